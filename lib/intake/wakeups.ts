import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type WakeupHint } from '../cluster/cluster-coordinator.js';
import { type PriorityRank } from '../jobs/priority.js';
import { type NewJob } from '../store/job-store.js';

/**
 * A commit this long after its insert may be passed already: a claim has gone beyond the job's due time, and a floor may stand there.
 */
const LATE_COMMIT_MS = 100;

/**
 * An absolute due time is judged by this process's clock, which may be wrong. Within this distance the wakeup says nothing
 * of time, and whoever it wakes asks the database.
 */
const CLOCK_DOUBT_MS = 3_600_000;

interface Stream {
  readonly lane: string;
  readonly priority: PriorityRank;
  /** The earliest of its jobs, from the insert on; 0 is now. */
  dueInMs: number;
  behind: boolean;
}

/** The wakeups that one commit is worth: one for each stream that got a job, whatever their number. */
export class Wakeups {
  readonly #streams = new Map<string, Stream>();

  /** @param insertedAt - when the insert was sent, on the monotonic clock. */
  constructor(
    jobs: Iterable<NewJob>,
    private readonly insertedAt = performance.now(),
  ) {
    for (const job of jobs) this.#add(job);
  }

  /** To be called after the commit. Cannot throw. */
  send(messages: ClusterMessages): void {
    const age = performance.now() - this.insertedAt;
    for (const { lane, priority, dueInMs, behind } of this.#streams.values()) {
      const left = Math.max(0, dueInMs - age);
      const hint: WakeupHint = {
        ...(left > 0 ? { dueInMs: left } : {}),
        ...(behind || (left === 0 && age > LATE_COMMIT_MS) ? { behind: true } : {}),
      };
      messages.newWork(lane, priority, hint);
    }
  }

  #add({ lane, priority, delayMs, runAt }: NewJob): void {
    let dueInMs = delayMs;
    let behind = false;
    if (runAt) {
      const distance = runAt.getTime() - Date.now();
      dueInMs = distance > CLOCK_DOUBT_MS ? distance : 0;
      behind = dueInMs === 0;
    }
    const key = `${priority}${lane}`;
    const stream = this.#streams.get(key);
    if (stream) {
      stream.dueInMs = Math.min(stream.dueInMs, dueInMs);
      stream.behind ||= behind;
    } else {
      this.#streams.set(key, { lane, priority, dueInMs, behind });
    }
  }
}
