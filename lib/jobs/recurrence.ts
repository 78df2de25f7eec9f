/** What to do with occurrences that were due while no node was there to see to them. */
export type Misfire =
  /** None of them runs. */
  | 'skip'
  /** One run stands for them all; `ctx.missed` says how many more there were. */
  | 'once'
  /** The newest so many of them run, oldest first, one after the other unless `overlap` is `'allow'`. */
  | { readonly catchUp: number };

/** What to do with an occurrence while a job of the same schedule is live: pending, running, paused, or waiting for its retry. */
export type Overlap =
  /** It does not run, and is recorded as skipped. */
  | 'skip'
  /** It waits, and becomes a job when that one has ended. */
  | 'queue'
  /** It becomes a job at once. */
  | 'allow';

/** `cluster`: one run for all nodes. `node`: each node that has the handler runs it for itself, in memory. */
export type RecurringScope = 'cluster' | 'node';

/** The occurrence of a recurring schedule that a job stands for. */
export interface Recurrence {
  readonly scheduleId: string;
  /** The planned time: whatever the delay, the jitter, or the clock of this node. */
  readonly scheduledFor: Date;
  /** The planned time of the run before this one; `undefined` for the first. */
  readonly previous: Date | undefined;
  /** How many occurrences were missed since then and have no run of their own. */
  readonly missed: number;
}

/** Under these keys the metadata of a job says which occurrence it stands for. The first is indexed: see the store. */
export const RECURRENCE_KEYS = {
  schedule: 'ratchet:schedule',
  scheduledFor: 'ratchet:scheduledFor',
  previous: 'ratchet:previous',
  missed: 'ratchet:missed',
} as const;

/** What follows the id of a schedule in the name of the jobs that it makes, unless the method has a `@Job` of its own. */
export const RECURRING_SUFFIX = '#recurring';

/** Read from a job's metadata; `undefined` for a job that nobody scheduled. */
export function recurrenceOf(metadata: unknown): Recurrence | undefined {
  if (typeof metadata !== 'object' || metadata === null) return undefined;
  const of = metadata as Record<string, unknown>;
  const scheduleId = of[RECURRENCE_KEYS.schedule];
  const scheduledFor = of[RECURRENCE_KEYS.scheduledFor];
  if (typeof scheduleId !== 'string' || typeof scheduledFor !== 'string') return undefined;
  const previous = of[RECURRENCE_KEYS.previous];
  const missed = of[RECURRENCE_KEYS.missed];
  return {
    scheduleId,
    scheduledFor: new Date(scheduledFor),
    previous: typeof previous === 'string' ? new Date(previous) : undefined,
    missed: typeof missed === 'number' ? missed : 0,
  };
}

/** The metadata that {@link recurrenceOf} reads, as JSON text. */
export function recurrenceMetadata({ scheduleId, scheduledFor, previous, missed }: Recurrence): string {
  return JSON.stringify({
    [RECURRENCE_KEYS.schedule]: scheduleId,
    [RECURRENCE_KEYS.scheduledFor]: scheduledFor.toISOString(),
    ...(previous ? { [RECURRENCE_KEYS.previous]: previous.toISOString() } : {}),
    [RECURRENCE_KEYS.missed]: missed,
  });
}
