import { type Misfire, type Overlap } from '../jobs/recurrence.js';
import { type DueSchedule, type Firing, type MissedRange, type PlannedRun } from '../store/schedule-store.js';
import { jitterOf } from './jitter.js';

/**
 * The newest due occurrence is on time when it is seen to within so long of its time, and so are those before it that the node was
 * there for: it waited for a node that was killed, or for the database. All others are missed.
 */
export const MISFIRE_AFTER_MS = 10_000;
/** Schedules are due once a second at most. */
const MOST_ON_TIME = MISFIRE_AFTER_MS / 1_000 + 1;

/** So many of the newest missed occurrences are recorded one by one, and the older ones as one range. */
const MISSED_ONE_BY_ONE = 50;

/** What is due of one schedule. */
export interface DueTimes {
  /** The oldest. */
  readonly first: Date | undefined;
  readonly count: number;
  /** The newest of them, as many as {@link occurrencesToKeep} asks for, oldest first. */
  readonly newest: readonly Date[];
  /** The first that is not due yet; undefined: there is none. */
  readonly next: Date | undefined;
}

/** How many of the newest due occurrences a plan has to see: those that run, those recorded one by one, and the end of the range. */
export function occurrencesToKeep(misfire: Misfire): number {
  return mostLateRuns(misfire) + MOST_ON_TIME + MISSED_ONE_BY_ONE + 1;
}

/**
 * Which of the due occurrences of a schedule run, which are missed, and when it is due next: the rules of misfire, overlap and
 * jitter, all of them. Pure: `now` is the database's, and whether a job of the schedule is live is for the store to see when it
 * fires, so every run says what to do then.
 *
 * - `skip`: no missed one runs.
 * - `once`: one run stands for all: the first on time, else the newest missed.
 * - `catchUp`: the newest so many of the missed run too, oldest first.
 *
 * Occurrences that run together would have run one after the other, had they been fired in time: with `overlap: 'skip'` none of them is
 * skipped because of the one before, they wait for each other. What was caught up on waits for a job that is live, too. The first run is told how many have no run of their own.
 *
 * @param upMs - for how long this node has been there to see what is due.
 */
export function planFiring(
  schedule: DueSchedule,
  { first, count, newest, next }: DueTimes,
  now: Date,
  newJobId: () => string,
  upMs: number,
): Firing {
  const { id, revision, nextAt, misfire, overlap, jitterMs, untold } = schedule;
  const last = newest.at(-1);
  const attendedMs = Math.min(MISFIRE_AFTER_MS, upMs);
  const onTime = newest.filter((at) => {
    const lateMs = now.getTime() - at.getTime();
    return at === last ? lateMs <= MISFIRE_AFTER_MS : lateMs <= attendedMs;
  });
  const late = newest.slice(0, newest.length - onTime.length);
  const standIns = misfire === 'once' && onTime.length > 0 ? 0 : mostLateRuns(misfire);
  const lateRuns = standIns === 0 ? [] : late.slice(-standIns);
  const dropped = late.slice(0, late.length - lateRuns.length);
  const droppedCount = count - onTime.length - lateRuns.length;
  const catchesUp = typeof misfire === 'object' && lateRuns.length > 0;
  const times = [...lateRuns, ...onTime];
  const together = times.length > 1 ? 'follow' : 'skip';
  const runs = times.map((at, index) => ({
    at,
    jobId: newJobId(),
    delayMs: jitterOf(id, at, jitterMs),
    missed: index === 0 ? untold + droppedCount : 0,
    ifBusy: overlap === 'skip' ? (catchesUp ? 'wait' : together) : IF_BUSY[overlap],
  }));
  return {
    id,
    revision,
    nextAt,
    advanceTo: next,
    runs,
    missed: missedRanges(first, dropped, droppedCount),
  };
}

const IF_BUSY: Readonly<Record<Exclude<Overlap, 'skip'>, PlannedRun['ifBusy']>> = {
  allow: 'run',
  queue: 'wait',
};

function mostLateRuns(misfire: Misfire): number {
  if (typeof misfire === 'object') return misfire.catchUp;
  return misfire === 'once' ? 1 : 0;
}

/** `dropped` are the newest of them. */
function missedRanges(
  oldest: Date | undefined,
  dropped: readonly Date[],
  count: number,
): readonly MissedRange[] {
  const single = dropped.slice(-MISSED_ONE_BY_ONE).map((at) => ({ from: at, to: at, count: 1 }));
  const before = count - single.length;
  const end = dropped.at(-1 - MISSED_ONE_BY_ONE);
  return before > 0 && oldest && end ? [{ from: oldest, to: end, count: before }, ...single] : single;
}
