import { inOwnContext } from '../observability/own-context.js';
import { type Inserted, type NewJob } from '../store/job-store.js';
import { faultKindOf } from '../store/store-fault.js';
import { Backlog } from './backlog.js';
import { type InsertRetry } from './insert-retry.js';

/** What one statement carries at most. */
const GROUP_JOBS = 1_000;
const GROUP_BYTES = 1_000_000;
/** Statements at once. The second lets one be built while the other is committed; more would only make groups smaller. */
const IN_FLIGHT = 2;

interface Waiting {
  readonly job: NewJob;
  readonly resolve: (inserted: Inserted) => void;
  readonly reject: (error: unknown) => void;
}

/** Jobs that share a fate: all without a parent, or all children of one claim (a fence refuses them together). */
type Queue = Waiting[];

/**
 * Saves jobs that are enqueued at the same moment by one insert: group commit by back-pressure, no timer. The first goes at
 * the end of the event loop's turn; what arrives while inserts are in flight goes with the next.
 *
 * Only for jobs without keys, outside transactions: one key that an open transaction holds would stall all its neighbours.
 * A group that fails for one row is split until that row stands alone, so that each caller gets its own answer.
 */
export class Gathering {
  readonly #queues = new Map<string, Queue>();
  #inFlight = 0;
  #scheduled = false;

  constructor(
    private readonly inserts: InsertRetry,
    /** Must not throw. */
    private readonly committed: (jobs: readonly NewJob[], inserted: readonly Inserted[]) => void,
    private readonly waiting = new Backlog(),
  ) {}

  /**
   * Resolves when the job is committed.
   *
   * @throws IntakeFullError when too much is waiting already.
   */
  async add(job: NewJob): Promise<Inserted> {
    this.waiting.enter([job]);
    return await new Promise((resolve, reject) => {
      const fate = job.parent ? `${job.parent.id}/${job.parent.claimSeq}` : '';
      const queue = this.#queues.get(fate);
      if (queue) queue.push({ job, resolve, reject });
      else this.#queues.set(fate, [{ job, resolve, reject }]);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#inFlight >= IN_FLIGHT || this.waiting.jobs === 0) return;
    this.#scheduled = true;
    // After this turn's microtasks: callers in one Promise.all have then all arrived.
    setImmediate(() => {
      this.#scheduled = false;
      // Of many callers: in the context of none.
      void inOwnContext(() => this.#turn());
    });
  }

  async #turn(): Promise<void> {
    const group = this.#take();
    this.#inFlight += 1;
    this.#schedule();
    await this.#save(group);
    this.#inFlight -= 1;
    this.#schedule();
  }

  /** The next group, of one fate; what is left of that fate goes behind the others. */
  #take(): Waiting[] {
    for (const [fate, queue] of this.#queues) {
      let count = 0;
      let bytes = 0;
      for (const { job } of queue) {
        if (count > 0 && (count >= GROUP_JOBS || bytes + job.payload.length > GROUP_BYTES)) break;
        count += 1;
        bytes += job.payload.length;
      }
      const group = queue.splice(0, count);
      this.#queues.delete(fate);
      if (queue.length > 0) this.#queues.set(fate, queue);
      this.waiting.leave(group.map(({ job }) => job));
      return group;
    }
    return [];
  }

  /** Gives each of the group its answer. Never rejects. Returns the error that ended a single job. */
  async #save(group: readonly Waiting[]): Promise<unknown> {
    if (group.length === 0) return undefined;
    const jobs = group.map(({ job }) => job);
    let inserted: readonly Inserted[];
    try {
      inserted = await this.inserts.insert(jobs);
    } catch (error) {
      return await this.#divide(group, error);
    }
    // From here on they are committed, and nothing may send them again.
    group.forEach((waiting, index) => {
      const answer = inserted[index];
      if (answer) waiting.resolve(answer);
      else waiting.reject(new TypeError('The job store answered for fewer jobs than it was given.'));
    });
    this.committed(jobs, inserted);
    return undefined;
  }

  async #divide(group: readonly Waiting[], error: unknown): Promise<unknown> {
    const kind = faultKindOf(error);
    const rest = group.slice(1);
    if (rest.length === 0 || (kind !== 'bad_row' && kind !== 'fatal')) {
      for (const { reject } of group) reject(error);
      return error;
    }
    if (kind === 'bad_row') {
      const middle = Math.ceil(group.length / 2);
      await this.#save(group.slice(0, middle));
      await this.#save(group.slice(middle));
      return undefined;
    }
    // A missing grant or table fails every row: the outermost two tell, before a thousand statements are sent for nothing.
    const first = await this.#save(group.slice(0, 1));
    const last = await this.#save(rest.slice(-1));
    const middle = rest.slice(0, -1);
    if (first === undefined || last === undefined) return await this.#save(middle);
    for (const { reject } of middle) reject(error);
    return error;
  }
}
