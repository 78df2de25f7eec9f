import { inOwnContext } from '../observability/own-context.js';
import { type Inserted, type NewJob } from '../store/job-store.js';
import { faultKindOf } from '../store/store-fault.js';
import { type Accepted, accepted, refusalOf } from './accepted.js';
import { Backlog } from './backlog.js';
import { type InsertRetry } from './insert-retry.js';

/** What one statement carries at most. */
const GROUP_JOBS = 1_000;
const GROUP_BYTES = 1_000_000;
/** Statements at once. The second lets one be built while the other is committed; more would only make groups smaller. */
const IN_FLIGHT = 2;

/** The jobs of one call, which stay together. */
interface Waiting {
  readonly jobs: readonly NewJob[];
  readonly resolve: (inserted: readonly Accepted[]) => void;
  readonly reject: (error: unknown) => void;
}

export interface GatheringSettings {
  /** What may wait for a statement. */
  readonly waiting?: Backlog;
  /** Statements at once. With one, the order of the calls is that of the commits. @defaultValue `2` */
  readonly inFlight?: number;
}

/** Jobs that share a fate: all without a parent, or all children of one claim (a fence refuses them together). */
type Queue = Waiting[];

/**
 * Saves jobs that are enqueued at the same moment by one insert: group commit by back-pressure, no timer. The first goes at
 * the end of the event loop's turn; what arrives while inserts are in flight goes with the next.
 *
 * Only for jobs without keys, outside transactions: one key that an open transaction holds would stall all its neighbours.
 * A group that fails for one row is split until its call stands alone, so that each caller gets its own answer.
 */
export class Gathering {
  readonly #queues = new Map<string, Queue>();
  readonly #waiting: Backlog;
  readonly #most: number;
  #inFlight = 0;
  #scheduled = false;

  constructor(
    private readonly inserts: Pick<InsertRetry, 'insert'>,
    /** Must not throw. */
    private readonly committed: (jobs: readonly NewJob[], inserted: readonly Inserted[]) => void,
    { waiting = new Backlog(), inFlight = IN_FLIGHT }: GatheringSettings = {},
  ) {
    this.#waiting = waiting;
    this.#most = inFlight;
  }

  /**
   * Resolves when the jobs are committed: all of them, or none. They have one parent, or none has.
   *
   * @throws IntakeFullError when too much is waiting already, PriorityDisabledError for a job of this call.
   */
  async add(jobs: readonly NewJob[]): Promise<readonly Accepted[]> {
    this.#waiting.enter(jobs);
    return await new Promise((resolve, reject) => {
      const parent = jobs[0]?.parent;
      const fate = parent ? `${parent.id}/${parent.claimSeq}` : '';
      const queue = this.#queues.get(fate);
      if (queue) queue.push({ jobs, resolve, reject });
      else this.#queues.set(fate, [{ jobs, resolve, reject }]);
      this.#schedule();
    });
  }

  /** Rejects everything that waits for its statement. */
  abandon(reason: () => unknown): void {
    const left = [...this.#queues.values()].flat();
    this.#queues.clear();
    for (const { jobs, reject } of left) {
      this.#waiting.leave(jobs);
      reject(reason());
    }
  }

  #schedule(): void {
    if (this.#scheduled || this.#inFlight >= this.#most || this.#queues.size === 0) return;
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
      let calls = 0;
      for (const { jobs } of queue) {
        const more = jobs.reduce((sum, { payload }) => sum + payload.length, 0);
        if (calls > 0 && (count + jobs.length > GROUP_JOBS || bytes + more > GROUP_BYTES)) break;
        calls += 1;
        count += jobs.length;
        bytes += more;
      }
      const group = queue.splice(0, calls);
      this.#queues.delete(fate);
      if (queue.length > 0) this.#queues.set(fate, queue);
      for (const { jobs } of group) this.#waiting.leave(jobs);
      return group;
    }
    return [];
  }

  /** Gives each of the group its answer. Never rejects. Returns the error that ended a single call. */
  async #save(group: readonly Waiting[]): Promise<unknown> {
    if (group.length === 0) return undefined;
    const jobs = group.flatMap((waiting) => waiting.jobs);
    let inserted: readonly Inserted[];
    try {
      inserted = await this.inserts.insert(jobs);
    } catch (error) {
      return await this.#divide(group, error);
    }
    // From here on they are committed, and nothing may send them again; but for those that were left out because of another call.
    const again: Waiting[] = [];
    let at = 0;
    for (const waiting of group) {
      const { jobs: own, resolve, reject } = waiting;
      const answers = inserted.slice(at, (at += own.length));
      const refusal = refusalOf(own, answers);
      if (refusal) reject(refusal);
      else if (answers.some(({ outcome }) => outcome === 'left_out')) again.push(waiting);
      else if (answers.length === own.length) resolve(accepted(own, answers));
      else reject(new TypeError('The job store answered for fewer jobs than it was given.'));
    }
    this.committed(jobs, inserted);
    return again.length === group.length ? this.#fail(again) : await this.#save(again);
  }

  #fail(group: readonly Waiting[]): undefined {
    const error = new TypeError('The job store left out jobs, and refused none.');
    for (const { reject } of group) reject(error);
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
