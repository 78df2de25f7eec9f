import { type EngineEvents } from '../observability/engine-events.js';
import { type BucketRef } from '../store/job-store.js';
import { executionEvent, tellSettled } from './execution-events.js';
import { type LateRecorder } from './late-recorder.js';
import { type Outbox, type OutboxEntry } from './outbox.js';

/** What the database's answer about finished work means for the next turns. */
export interface Consequences {
  /** A job that we gave back is due at once. */
  dueNow: boolean;
  /** Something was given back behind the floors. */
  behind: boolean;
  /** Delays of retries and snoozes: the statement that wrote them could not see them. */
  readonly dueInMs: number[];
  /** The smallest number of skips among the entries that were skipped now. */
  fewestSkips: number | undefined;
}

/** Works the database's word on finished executions into the outbox: recorded, skipped, or lost to a newer claim. */
export class Verdicts {
  constructor(
    private readonly bucket: BucketRef,
    private readonly outbox: Outbox,
    private readonly late: LateRecorder,
    private readonly events: EngineEvents,
  ) {}

  /** `undecided` says which entries stay as they are: skipped by an exchange, or still standing after a reconcile. */
  apply(
    entries: readonly OutboxEntry[],
    verdict: (id: string) => 'recorded' | 'skipped' | 'lost' | 'standing',
  ): Consequences {
    const consequences: Consequences = { dueNow: false, behind: false, dueInMs: [], fewestSkips: undefined };
    for (const entry of entries) {
      switch (verdict(entry.settlement.id)) {
        case 'recorded':
          this.#recorded(entry, consequences);
          break;
        case 'lost':
          this.#lost(entry, consequences);
          break;
        case 'skipped':
          this.outbox.skip(entry);
          consequences.fewestSkips = Math.min(consequences.fewestSkips ?? entry.skips, entry.skips);
          break;
        case 'standing':
      }
    }
    return consequences;
  }

  #recorded(entry: OutboxEntry, consequences: Consequences): void {
    const { outcome, delayMs } = entry.settlement;
    this.outbox.remove(entry.key);
    if (entry.work) tellSettled(this.events, entry.work, entry.settlement, this.bucket);
    entry.onRecorded?.(entry.settlement);
    if (entry.late) this.late.record(entry.late);
    if (outcome === 'released') isBack(consequences);
    else if (delayMs === 0) consequences.dueNow = true;
    else if (delayMs !== undefined) consequences.dueInMs.push(delayMs);
  }

  #lost(entry: OutboxEntry, consequences: Consequences): void {
    const { id, claimSeq, outcome, error } = entry.settlement;
    this.outbox.remove(entry.key);
    if (leavesNoTrace(entry)) {
      isBack(consequences);
      return;
    }
    if (entry.work && this.events.heard('lost')) {
      const execution = executionEvent(entry.work.job, this.bucket);
      this.events.emit('lost', { ...execution, bucket: this.bucket.id, reason: 'claim' });
    }
    const own = { jobId: id, claimSeq, outcome, ...(error === undefined ? {} : { error }) };
    if (entry.late) this.late.record(entry.late, 'lost');
    else if (outcome !== 'released') this.late.record(own, 'lost');
  }
}

/** We gave it back, or it may be back: whatever there is of it is due. */
function isBack(consequences: Consequences): void {
  consequences.behind = true;
  consequences.dueNow = true;
}

/** A claim that was given back before it began closes no execution, so that nobody can tell a commit of it from a newer claim. */
function leavesNoTrace({ settlement, work }: OutboxEntry): boolean {
  return settlement.outcome === 'released' && work?.job.begun === false && work.beganMs === undefined;
}
