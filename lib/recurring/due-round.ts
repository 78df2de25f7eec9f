import { describeError } from '../errors/describe-error.js';
import { showValue } from '../errors/show-value.js';
import { type JobTemplate } from '../jobs/schedule-spec.js';
import { type NodeRef } from '../store/job-store.js';
import {
  type BrokenSchedule,
  type DueAnswer,
  type DueSchedule,
  type Firing,
  type FiringOutcome,
} from '../store/schedule-store.js';
import { faultKindOf } from '../store/store-fault.js';
import { Breath } from './breath.js';
import { type BrokenSchedules } from './broken-schedules.js';
import { type FiringPlanner } from './firing-planner.js';
import { LongCounts } from './long-counts.js';
import { MissedLines } from './missed-lines.js';
import { type OccurrenceReport } from './occurrence-report.js';
import { type RecurringParts } from './recurring-parts.js';
import { RefusedLines } from './refused-lines.js';

/** A node that is gone holds up the others for so long at most. */
export const LEASE_MS = 3_000;
/** The others ask when it has expired. */
const STAND_BY_MS = 50;
/** Schedules of one round: reading them, and writing their firings, are steps that hold the event loop. */
const LIMIT = 250;
/** Runs of one statement: a schedule may have a thousand to catch up on. */
const MOST_RUNS = 1_000;
/** After so long what was planned is fired first: many counts of middling length make nobody late. */
const PLAN_MS = 500;
/** While something is counted: prolongs the lease, so that no other node counts the same, and sees a pause that nobody told. */
const COUNTING_LOOK_MS = 2_000;

export interface RoundResult {
  /** This node holds the lease. */
  readonly leads: boolean;
  /** More is due than this round took, and another one gets on with it. */
  readonly more: boolean;
  /** A part of it may be due still: somebody was faster, or holds it. The others are done. */
  readonly contended: boolean;
  /** Some occurrence waits, and could become a job. */
  readonly promotable: boolean;
  /** When to look next; undefined: when somebody says so. */
  readonly nextInMs: number | undefined;
}

export interface DueRoundParts extends Pick<
  RecurringParts,
  'store' | 'clock' | 'events' | 'debug' | 'logger' | 'faults'
> {
  readonly planner: FiringPlanner;
  readonly report: OccurrenceReport;
  readonly broken: BrokenSchedules;
  /** Ends what is counted in the background. */
  readonly signal: AbortSignal;
  /** What was counted in the background is there to be fired. */
  readonly lookAgain: () => void;
}

/** What a round has come upon. */
interface Findings {
  readonly broken: BrokenSchedule[];
  contended: boolean;
  /** Some of what is due is counted in the background, or waits for that. */
  counting: boolean;
  /** The planning has taken so long that the rest has to wait for the next round. */
  cut: boolean;
}

/**
 * One look at what is due, and its firing. The lease that the look takes saves work only: whatever two nodes do at once, each
 * occurrence is made once, because the store fires a schedule only while it is due at the time that was seen. For the same reason a
 * round whose reply was lost is simply made again.
 *
 * A schedule that cannot be planned or fired is marked as broken, and holds up no other; nor does one that takes long to count.
 */
export class DueRound {
  readonly #parts: DueRoundParts;
  readonly #missed: MissedLines;
  readonly #refused: RefusedLines;
  readonly #counts: LongCounts;

  constructor(parts: DueRoundParts) {
    this.#parts = parts;
    this.#missed = new MissedLines(parts.clock, parts.logger);
    this.#refused = new RefusedLines(parts.clock, parts.logger);
    this.#counts = new LongCounts({ ...parts, onEnded: parts.lookAgain });
  }

  /** Rejects when the database did not carry out all of it; what it did is told. `signal` ends it between two statements. */
  async run(node: NodeRef, signal: AbortSignal): Promise<RoundResult> {
    const { store, clock, events, broken } = this.#parts;
    const answer = await store.due({ node, leaseMs: LEASE_MS, limit: LIMIT });
    const answeredMs = clock.monotonicMs();
    const { due, heldForMs, promotable } = answer;
    if (heldForMs !== undefined) {
      const nextInMs = heldForMs + STAND_BY_MS;
      events.emit('schedules_looked', { due: 0, held: true, nextInMs });
      return { leads: false, more: false, contended: false, promotable, nextInMs };
    }
    this.#counts.begin(answer);
    const findings: Findings = { broken: [...answer.broken], contended: false, counting: false, cut: false };
    const firings = await this.#plan(answer, findings, signal);
    const templates = new Map(due.map(({ id, template }) => [id, template]));
    for (const batch of batchesOf(firings)) {
      signal.throwIfAborted();
      await this.#fire(batch, templates, findings);
    }
    this.#missed.tell();
    this.#refused.tell();
    const allMarked = await broken.mark(findings.broken);
    const ownNextInMs = untilNext(answer, firings, clock.monotonicMs() - answeredMs);
    const nextInMs = findings.counting ? Math.min(ownNextInMs ?? Infinity, COUNTING_LOOK_MS) : ownNextInMs;
    events.emit('schedules_looked', { due: due.length, held: false, nextInMs });
    const contended = findings.contended || !allMarked;
    // When all that was told is being counted, the next answer says the same.
    const more = findings.cut || (answer.more && firings.length + findings.broken.length > 0);
    const leads = due.length + answer.broken.length > 0;
    return { leads, more, contended, promotable, nextInMs };
  }

  /** Nothing is counted in the background any more; for after the signal. */
  whenIdle(): Promise<void> {
    return this.#counts.whenIdle();
  }

  /** In slices: others may have the event loop in between. */
  async #plan({ due, now }: DueAnswer, findings: Findings, signal: AbortSignal): Promise<readonly Firing[]> {
    const { clock } = this.#parts;
    const breath = new Breath(clock);
    const untilMs = clock.monotonicMs() + PLAN_MS;
    const firings: Firing[] = [];
    for (const schedule of due) {
      signal.throwIfAborted();
      if (clock.monotonicMs() >= untilMs) {
        findings.cut = true;
        break;
      }
      const firing = await this.#planOne(schedule, now, findings, signal);
      if (firing) firings.push(firing);
      await breath.take();
    }
    return firings;
  }

  async #planOne(
    schedule: DueSchedule,
    now: Date,
    findings: Findings,
    signal: AbortSignal,
  ): Promise<Firing | undefined> {
    try {
      const times = await this.#counts.times(schedule, now);
      if (times) return this.#parts.planner.plan(schedule, times, now);
      findings.counting = true;
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const { id, revision } = schedule;
      findings.broken.push({ id, revision, fault: describeError(error).message });
      return undefined;
    }
  }

  async #fire(
    firings: readonly Firing[],
    templates: ReadonlyMap<string, JobTemplate>,
    findings: Findings,
  ): Promise<void> {
    const { store, debug, report } = this.#parts;
    const byId = new Map(firings.map((firing) => [firing.id, firing]));
    await debug.reach('recurring.firing', firings[0]?.id ?? '');
    try {
      const outcomes = await store.fire(firings);
      await debug.reach('recurring.fired', firings[0]?.id ?? '');
      for (const outcome of outcomes) {
        const firing = byId.get(outcome.id);
        if (firing) this.#decided(firing, outcome, findings);
      }
    } catch (error) {
      if (faultKindOf(error) === 'unknown')
        report.unsure([...templates].flatMap(([id, template]) => (byId.has(id) ? [template] : [])));
      throw error;
    }
  }

  #decided(firing: Firing, outcome: FiringOutcome, findings: Findings): void {
    const { id, revision } = firing;
    switch (outcome.outcome) {
      case 'fired':
        this.#parts.report.decided(firing, outcome);
        this.#missed.note(firing);
        this.#refused.note(id, outcome.refused);
        break;
      case 'superseded':
        findings.contended = true;
        break;
      case 'failed':
        if (isOwnFault(outcome.error)) {
          findings.broken.push({ id, revision, fault: describeError(outcome.error).message });
        } else {
          this.#parts.faults.failed(`recurring schedule ${showValue(id)}`, outcome.error);
          findings.contended = true;
        }
    }
  }
}

/** Nothing else than a change of the schedule mends it. */
function isOwnFault(error: unknown): boolean {
  return ['bad_row', 'fatal'].includes(faultKindOf(error));
}

/** Of so many runs that a statement stays small. */
function batchesOf(firings: readonly Firing[]): readonly (readonly Firing[])[] {
  const batches: Firing[][] = [];
  let room = 0;
  for (const firing of firings) {
    const size = firing.runs.length + firing.missed.length;
    if (size > room || batches.length === 0) {
      batches.push([]);
      room = MOST_RUNS;
    }
    batches.at(-1)?.push(firing);
    room -= size;
  }
  return batches;
}

/** All by the database's clock, but for what has passed since its answer. */
function untilNext(
  { now, nextInMs = Infinity }: DueAnswer,
  firings: readonly Firing[],
  passedMs: number,
): number | undefined {
  const advanced = firings.flatMap(({ advanceTo }) => (advanceTo ? [advanceTo.getTime()] : []));
  const next = advanced.reduce((least, at) => Math.min(least, at - now.getTime()), nextInMs);
  return next === Infinity ? undefined : Math.max(0, next - passedMs);
}
