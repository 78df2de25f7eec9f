import { within } from '../cluster/within.js';
import { showValue } from '../errors/show-value.js';
import { type AnnotatedSchedule } from '../jobs/schedule-spec.js';
import { type ClaimedJob } from '../store/job-store.js';
import { DatabaseTime } from './database-time.js';
import { jitterOf } from './jitter.js';
import { type NodeRun } from './node-run.js';
import { NodeSchedule } from './node-schedule.js';
import { type RecurringParts } from './recurring-parts.js';
import { type RuleCache } from './rule-cache.js';
import { ScheduleTimer } from './schedule-timer.js';
import { occurrencesUntil } from './time/missed.js';

const WHERE = 'schedules of scope node';
/** Its own clock goes on without the database for so long; then it asks for the time, and who is paused, before the next run. */
const ASK_EVERY_MS = 60_000;
/** After one that failed. */
const ASK_AGAIN_MS = 10_000;
/** A database that does not answer holds up no run for longer. */
const ASK_MS = 500;
/** Several changes of schedules come together. */
const CHANGED_MS = 1_000;

export interface NodeScopeParts extends Pick<
  RecurringParts,
  'store' | 'clock' | 'events' | 'logger' | 'faults'
> {
  readonly rules: RuleCache;
  /** Tells the jitter of this node from that of others. */
  readonly nodeId: string;
  readonly run: (job: ClaimedJob) => NodeRun;
}

/** A schedule, and when it is due. */
interface Entry {
  readonly schedule: NodeSchedule;
  anchor: Date | undefined;
  paused: boolean;
  next: Date | undefined;
}

/**
 * Runs the schedules of scope `node`: every node that has the method runs it for itself, in memory, by the database's time. No jobs,
 * no retries, and no misfire: a node that was not there missed nothing. It goes on while the database is away.
 */
export class NodeScopeRunner {
  readonly #parts: NodeScopeParts;
  readonly #entries: readonly Entry[];
  readonly #time: DatabaseTime;
  readonly #timer: ScheduleTimer;
  /** Of runs that wait for their jitter. */
  readonly #delays = new Set<() => void>();
  readonly #idle: (() => void)[] = [];
  #started = false;
  #stopped = false;
  #turning = false;
  #asking = false;
  #askAtMs = Number.NEGATIVE_INFINITY;
  #failures = 0;

  constructor(annotated: readonly AnnotatedSchedule[], parts: NodeScopeParts) {
    this.#parts = parts;
    this.#entries = annotated.flatMap((each) =>
      each.spec.scope === 'node' && each.spec.enabled ? [this.#entry(each)] : [],
    );
    this.#time = new DatabaseTime(parts.clock);
    this.#timer = new ScheduleTimer(parts.clock, () => this.#ring());
  }

  /** Bodies that have not ended. */
  get running(): number {
    return this.#entries.reduce((sum, { schedule }) => sum + schedule.running, 0);
  }

  start(): void {
    if (this.#started || this.#entries.length === 0) return;
    this.#started = true;
    this.#wake(0);
  }

  /** Somebody changed a schedule: one of these may be paused, or is not any more. */
  changed(): void {
    if (this.#failures === 0) this.#askAtMs = Number.NEGATIVE_INFINITY;
    if (this.#started && this.#entries.some(({ paused }) => paused)) this.#wake(CHANGED_MS);
  }

  /** No further run. Those under way go on. */
  stop(): void {
    this.#stopped = true;
    this.#timer.clear();
    for (const cancel of this.#delays) cancel();
    this.#delays.clear();
    for (const { schedule } of this.#entries) schedule.forget();
  }

  whenIdle(): Promise<void> {
    return this.running === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  abort(): void {
    for (const { schedule } of this.#entries) schedule.abort();
  }

  #entry(annotated: AnnotatedSchedule): Entry {
    const { events, logger, run } = this.#parts;
    const onEnded = (): void => this.#ended();
    return {
      schedule: new NodeSchedule(annotated, { events, logger, run, onEnded }),
      anchor: undefined,
      paused: false,
      next: undefined,
    };
  }

  #ended(): void {
    if (this.running > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #wake(ms: number): void {
    if (!this.#stopped) this.#timer.lower(ms);
  }

  #ring(): void {
    if (this.#stopped) return;
    // What rings during a turn is seen by it, or by the timer that it sets.
    if (this.#turning) return;
    this.#turning = true;
    void this.#turn();
  }

  /** Never rejects, and never ends without a timer: nobody else would wake it. */
  async #turn(): Promise<void> {
    try {
      await this.#take();
    } catch (error) {
      this.#parts.faults.failed(WHERE, error);
      this.#wake(ASK_AGAIN_MS);
    } finally {
      this.#turning = false;
    }
  }

  async #take(): Promise<void> {
    const { clock } = this.#parts;
    if (clock.monotonicMs() >= this.#askAtMs) await within(clock, ASK_MS, this.#ask());
    if (this.#stopped) return;
    const { now } = this.#time;
    if (!now) {
      this.#wake(this.#parts.faults.delayMs(this.#failures));
      return;
    }
    for (const entry of this.#entries) {
      try {
        await this.#takeOne(entry, now);
      } catch (error) {
        // One that cannot be planned must not keep the others. It is planned afresh, and not at once.
        if (entry.next && entry.next <= now) entry.next = undefined;
        this.#parts.faults.failed(`${showValue(entry.schedule.annotated.spec.id)} of the ${WHERE}`, error);
        this.#wake(ASK_AGAIN_MS);
      }
    }
    this.#arm();
  }

  async #takeOne(entry: Entry, now: Date): Promise<void> {
    const { spec } = entry.schedule.annotated;
    if (entry.paused) return;
    const rule = this.#parts.rules.of(spec);
    entry.anchor ??= now;
    if (!entry.next) entry.next = rule.next(now, entry.anchor);
    if (!entry.next || entry.next > now) return;
    const due = await occurrencesUntil(rule, entry.next, now, entry.anchor, 1);
    entry.next = due.next;
    const [at] = due.newest;
    if (at && !this.#stopped) this.#fire(entry.schedule, at, due.count - 1);
  }

  #fire(schedule: NodeSchedule, at: Date, missed: number): void {
    const { clock, nodeId } = this.#parts;
    const { id, jitterMs } = schedule.annotated.spec;
    const delayMs = jitterOf(`${id} ${nodeId}`, at, jitterMs);
    if (delayMs === 0) {
      schedule.fire({ at, missed });
      return;
    }
    const cancel = clock.timer(delayMs, () => {
      this.#delays.delete(cancel);
      schedule.fire({ at, missed });
    });
    this.#delays.add(cancel);
  }

  #arm(): void {
    const now = this.#time.now?.getTime() ?? 0;
    for (const { next, paused } of this.#entries) if (next && !paused) this.#wake(next.getTime() - now);
    // Nobody need tell that it is not paused any more.
    if (this.#entries.some(({ paused }) => paused)) this.#wake(ASK_EVERY_MS);
  }

  /** Never rejects. Without an answer it goes on with what it knows. */
  async #ask(): Promise<void> {
    const { store, clock, faults } = this.#parts;
    if (this.#asking) return;
    this.#asking = true;
    const askedAtMs = clock.monotonicMs();
    this.#askAtMs = askedAtMs + ASK_EVERY_MS;
    try {
      const ids = this.#entries.map(({ schedule }) => schedule.annotated.spec.id);
      const { now, schedules } = await store.byIds(ids);
      this.#failures = 0;
      faults.worked(WHERE);
      this.#time.read(now, askedAtMs);
      const rows = new Map(schedules.map((row) => [row.id, row]));
      for (const entry of this.#entries) {
        const row = rows.get(entry.schedule.annotated.spec.id);
        entry.anchor ??= row?.anchor;
        entry.paused = row?.paused ?? false;
        // Afresh when it is resumed: a time that passed while it was paused is none that was missed.
        if (entry.paused) entry.next = undefined;
      }
    } catch (error) {
      this.#failures += 1;
      const delayMs = this.#time.now ? ASK_AGAIN_MS : faults.delayMs(this.#failures);
      this.#askAtMs = clock.monotonicMs() + delayMs;
      faults.failed(WHERE, error, delayMs);
    } finally {
      this.#asking = false;
    }
  }
}
