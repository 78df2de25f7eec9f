import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock } from '../cluster/clock.js';
import { showValue } from '../errors/show-value.js';
import { type DueAnswer, type DueSchedule } from '../store/schedule-store.js';
import { type FiringPlanner } from './firing-planner.js';
import { type DueTimes } from './occurrence-planner.js';

/** A round waits so long for one count, and so long for all of them; beyond that others would be late. */
const WAIT_MS = 50;
const WAIT_IN_ALL_MS = 250;
/** Each takes as much of the event loop as there is. */
const MOST_AT_ONCE = 2;
const SAY_AFTER_MS = 5_000;

export interface LongCountsParts {
  readonly clock: Clock;
  readonly logger: { warn(message: string): void };
  readonly planner: Pick<FiringPlanner, 'count'>;
  /** Ends all counts. */
  readonly signal: AbortSignal;
  /** A look is worth its statement: a count has ended, or there is a place for another one. */
  readonly onEnded: () => void;
}

/** One that was longer than a round waits for. */
interface LongCount {
  readonly key: string;
  readonly nextAt: Date;
  /** Undefined: it waits for a place, or has ended. */
  run: Run | undefined;
  /** Kept until the schedule has fired, since a firing may fail. */
  counted: DueTimes | undefined;
  failure: { readonly error: unknown } | undefined;
}

interface Run {
  readonly controller: AbortController;
  readonly sinceMs: number;
  readonly ended: Promise<void>;
  outcome: { readonly times: DueTimes } | { readonly error: unknown } | undefined;
}

/**
 * Counts what is due of a schedule. A count that takes long (each second for years) goes on in the background while the others
 * fire, two at once; the round that comes after its end counts what was due meanwhile, and fires it. What is counted counts for one
 * revision and one due time only: whoever changes, pauses or fires the schedule ends the count.
 *
 * It must never hold up a round, nor make it look again and again while a schedule waits for its place.
 */
export class LongCounts {
  readonly #parts: LongCountsParts;
  readonly #long = new Map<string, LongCount>();
  /** Whatever runs, those that were aborted and have not ended too. */
  readonly #runs = new Set<Run>();
  readonly #inBackground = new Set<Run>();
  #waitMs = 0;

  constructor(parts: LongCountsParts) {
    this.#parts = parts;
    const end = (): void => {
      for (const { controller } of this.#runs) controller.abort();
    };
    parts.signal.addEventListener('abort', end, { once: true });
  }

  /** A round begins with what the database says is due: ends the counts of schedules that are not, or not like that. */
  begin({ due, more }: Pick<DueAnswer, 'due' | 'more'>): void {
    this.#waitMs = WAIT_IN_ALL_MS;
    const keys = new Map(due.map((schedule) => [schedule.id, keyOf(schedule)]));
    // The oldest are told: one that is not among them may be due all the same.
    const completeUntil = more ? Math.max(...due.map(({ nextAt }) => nextAt.getTime())) : Infinity;
    for (const [id, long] of this.#long) {
      const key = keys.get(id);
      if (key === long.key || (key === undefined && long.nextAt.getTime() >= completeUntil)) continue;
      this.#long.delete(id);
      long.run?.controller.abort();
    }
  }

  /**
   * What is due until now; undefined: not known yet, {@link LongCountsParts.onEnded} says when to ask again.
   *
   * @throws what is wrong with the rule.
   */
  async times(schedule: DueSchedule, now: Date): Promise<DueTimes | undefined> {
    const { id, nextAt } = schedule;
    const known = this.#long.get(id);
    if (known?.failure) {
      this.#long.delete(id);
      throw known.failure.error;
    }
    if (known?.run) return undefined;
    const waits = known !== undefined && known.counted === undefined;
    if (waits && this.#isFull) return undefined;
    const run = this.#start(schedule, now, known?.counted);
    // One that is known to be long has had its time.
    await this.#wait(run.ended, waits ? 0 : WAIT_MS);
    if (run.outcome) {
      if ('error' in run.outcome) throw run.outcome.error;
      if (known) known.counted = run.outcome.times;
      return run.outcome.times;
    }
    const long: LongCount = known ?? {
      key: keyOf(schedule),
      nextAt,
      run: undefined,
      counted: undefined,
      failure: undefined,
    };
    this.#long.set(id, long);
    if (this.#isFull) run.controller.abort();
    else void this.#goOn(id, long, run);
    return undefined;
  }

  /** Resolves when no count is under way; for after the signal. */
  async whenIdle(): Promise<void> {
    await Promise.all([...this.#runs].map(({ ended }) => ended));
  }

  get #isFull(): boolean {
    return this.#inBackground.size >= MOST_AT_ONCE;
  }

  #start(schedule: DueSchedule, now: Date, counted: DueTimes | undefined): Run {
    const { planner, clock, signal } = this.#parts;
    const controller = new AbortController();
    if (signal.aborted) controller.abort();
    const sinceMs = clock.monotonicMs();
    const ended = planner.count(schedule, now, controller.signal, counted).then(
      (times) => this.#ended(run, { times }),
      (error: unknown) => this.#ended(run, { error }),
    );
    const run: Run = { controller, sinceMs, ended, outcome: undefined };
    this.#runs.add(run);
    return run;
  }

  #ended(run: Run, outcome: Run['outcome']): void {
    run.outcome = outcome;
    this.#runs.delete(run);
  }

  /** It may have ended when nothing is waited for: most are over before anything else has its turn. */
  async #wait(ended: Promise<void>, mostMs: number): Promise<void> {
    const { clock } = this.#parts;
    const ms = Math.min(mostMs, this.#waitMs);
    if (ms <= 0) {
      await Promise.race([ended, nextTurn()]);
      return;
    }
    const sinceMs = clock.monotonicMs();
    let cancel: (() => void) | undefined;
    const over = new Promise<void>((resolve) => (cancel = clock.timer(ms, resolve)));
    await Promise.race([ended, over]);
    cancel?.();
    this.#waitMs -= clock.monotonicMs() - sinceMs;
  }

  /** Never rejects. */
  async #goOn(id: string, long: LongCount, run: Run): Promise<void> {
    const { clock, onEnded } = this.#parts;
    long.run = run;
    this.#inBackground.add(run);
    const leftMs = SAY_AFTER_MS - (clock.monotonicMs() - run.sinceMs);
    const cancel = clock.timer(Math.max(0, leftMs), () => this.#say(id, long, run), true);
    await run.ended;
    cancel();
    this.#inBackground.delete(run);
    long.run = undefined;
    if (run.outcome && 'times' in run.outcome) long.counted = run.outcome.times;
    else if (run.outcome) long.failure = run.outcome;
    const isWanted = this.#long.get(id) === long;
    const othersWait = [...this.#long.values()].some((each) => !each.run && !each.counted);
    if (isWanted || othersWait) onEnded();
  }

  #say(id: string, { nextAt }: LongCount, { controller }: Run): void {
    if (controller.signal.aborted) return;
    this.#parts.logger.warn(
      `the recurring schedule ${showValue(id)} was due so often since ${nextAt.toISOString()} that it takes long to count what was missed ` +
        `(${SAY_AFTER_MS / 1_000} s so far): it runs when that is done. To give up what was missed, pause the schedule and resume it`,
    );
  }
}

function keyOf({ revision, nextAt }: DueSchedule): string {
  return `${revision} ${nextAt.getTime()}`;
}
