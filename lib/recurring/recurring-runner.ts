import { type NodeRef } from '../store/job-store.js';
import { BrokenSchedules } from './broken-schedules.js';
import { DueRound, LEASE_MS, type RoundResult } from './due-round.js';
import { FiringPlanner } from './firing-planner.js';
import { OccurrencePromoter } from './occurrence-promoter.js';
import { OccurrenceReport } from './occurrence-report.js';
import { RECURRING_LEASE } from '../store/schedule-store.js';
import { RECURRING_LANE, tellSchedule } from './recurring-lane.js';
import { type RecurringParts } from './recurring-parts.js';
import { type RuleCache } from './rule-cache.js';
import { ScheduleTimer } from './schedule-timer.js';

const WHERE = 'recurring schedules';
/** Rounds in a row of which somebody else did a part, or holds one: each means that something was done, unless it is held for long. */
const CONTENDED_AT_ONCE = 5;

/**
 * When a node looks for schedules that are due. There is no poll: it knows how long it is until the next one, from its own last
 * look, from each heartbeat's answer, and from whoever changes a schedule; then it looks, and whichever node gets the lease fires.
 * The others stand by until the lease would have expired, so that a node that stops in between costs no more than that.
 *
 * - `waiting`: for its timer.
 * - `looking`: a round is under way; what wants a look meanwhile gets one more.
 * - `backing off`: after a failure only the timer looks.
 * - `held`: the node's own heartbeats are not acknowledged: others may fire, this one does not.
 *
 * Nothing here throws into its callers, and nothing is right because of it: see `ScheduleStore.fire`.
 */
export class RecurringRunner {
  readonly #parts: RecurringParts;
  readonly #round: DueRound;
  readonly #promoter: OccurrencePromoter;
  readonly #timer: ScheduleTimer;
  readonly #stopping = new AbortController();
  #node: NodeRef;
  #unregister: (() => void)[] = [];
  #started = false;
  #startedMs = 0;
  #held = false;
  #looking: Promise<void> | undefined;
  #again = false;
  #failures = 0;
  /** Rounds in a row. */
  #contended = 0;
  #notBeforeMs = 0;
  /** Until then the lease may be ours. */
  #leadsUntilMs = 0;

  constructor(node: NodeRef, parts: RecurringParts & { readonly rules: RuleCache }) {
    this.#node = node;
    this.#parts = parts;
    const report = new OccurrenceReport(parts);
    const upMs = (): number => parts.clock.monotonicMs() - this.#startedMs;
    const planner = new FiringPlanner(parts.rules, upMs);
    this.#round = new DueRound({
      ...parts,
      planner,
      report,
      broken: new BrokenSchedules(parts),
      signal: this.#stopping.signal,
      lookAgain: () => this.dueIn(0),
    });
    this.#promoter = new OccurrencePromoter({ ...parts, report });
    this.#timer = new ScheduleTimer(parts.clock, () => this.#look());
  }

  /** @param yieldMs - leaves what is due to others for so long. */
  start(yieldMs = 0): void {
    if (this.#started || this.#stopped) return;
    this.#started = true;
    this.#startedMs = this.#parts.clock.monotonicMs();
    this.#notBeforeMs = this.#startedMs + yieldMs;
    const { messages, events } = this.#parts;
    this.#unregister = [
      messages.onWakeup(({ lane, dueInMs }) => {
        if (lane === RECURRING_LANE) this.dueIn(dueInMs ?? 0);
      }),
      messages.onCatchUp(() => this.dueIn(0)),
      events.on('schedule_job_ended', () => this.#promoter.wake()),
      // Whose jobs they were is not told.
      events.on('rescued', ({ failed }) => {
        if (failed > 0) this.#promoter.wake();
      }),
    ];
    this.#promoter.start();
    this.dueIn(0);
  }

  /** Something may be due in so many milliseconds. */
  dueIn(ms: number): void {
    if (!this.#active) return;
    this.#timer.lower(Math.max(ms, this.#notBeforeMs - this.#parts.clock.monotonicMs()));
  }

  /** The node has another name or epoch from now on. */
  rename(node: NodeRef): void {
    this.#node = node;
    this.#leadsUntilMs = 0;
    this.dueIn(0);
  }

  /** True: fire nothing. */
  hold(held: boolean): void {
    if (held === this.#held) return;
    this.#held = held;
    if (held) {
      this.#timer.clear();
      void this.#promoter.stop();
    } else if (this.#started && !this.#stopped) {
      this.#promoter.start();
      this.dueIn(0);
    }
  }

  /** Leaves no timer and sends nothing more but the word to the others. Resolves when nothing is under way. */
  async stop(): Promise<void> {
    if (this.#stopped) {
      await Promise.all([this.#looking, this.#round.whenIdle()]);
      return;
    }
    this.#stopping.abort();
    for (const unregister of this.#unregister.splice(0)) unregister();
    const nextInMs = this.#timer.leftMs;
    this.#timer.clear();
    await Promise.all([this.#looking, this.#promoter.stop()]);
    await this.#round.whenIdle();
    await this.#handOver(nextInMs ?? 0);
  }

  get #stopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  get #active(): boolean {
    return this.#started && !this.#stopped && !this.#held;
  }

  #look(): void {
    if (!this.#active) return;
    const leftMs = this.#notBeforeMs - this.#parts.clock.monotonicMs();
    if (leftMs > 0) {
      this.#timer.lower(leftMs);
      return;
    }
    this.#again = true;
    this.#looking ??= this.#rounds().finally(() => (this.#looking = undefined));
  }

  /** Never rejects. */
  async #rounds(): Promise<void> {
    while (this.#again && this.#active) {
      this.#again = false;
      try {
        this.#done(await this.#round.run(this.#node, this.#stopping.signal));
      } catch (error) {
        if (!this.#stopped) this.#failed(error);
      }
    }
  }

  #done({ leads, more, contended, promotable, nextInMs }: RoundResult): void {
    const { clock, faults } = this.#parts;
    this.#failures = 0;
    faults.worked(WHERE);
    if (leads) this.#leadsUntilMs = clock.monotonicMs() + LEASE_MS;
    if (promotable) this.#promoter.wake();
    this.#contended = contended ? this.#contended + 1 : 0;
    if (nextInMs !== undefined) this.dueIn(nextInMs);
    if (this.#contended > CONTENDED_AT_ONCE) this.dueIn(faults.delayMs(this.#contended - CONTENDED_AT_ONCE));
    else if (more || contended) this.#again = true;
  }

  #failed(error: unknown): void {
    const { faults, clock } = this.#parts;
    this.#failures += 1;
    const delayMs = faults.delayMs(this.#failures);
    faults.failed(WHERE, error, delayMs);
    this.#notBeforeMs = clock.monotonicMs() + delayMs;
    this.#again = false;
    this.dueIn(delayMs);
  }

  /** Whoever leads says so when it goes: the others need not wait for its lease to expire. */
  async #handOver(nextInMs: number): Promise<void> {
    const { locks, messages, clock } = this.#parts;
    if (clock.monotonicMs() >= this.#leadsUntilMs) return;
    // It expires anyway.
    await locks.release(RECURRING_LEASE, this.#node).catch(() => undefined);
    tellSchedule(messages, nextInMs);
  }
}
