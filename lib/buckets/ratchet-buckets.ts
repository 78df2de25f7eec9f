import { Logger } from '@nestjs/common';
import { type ClusterMessages } from '../cluster/cluster-messages.js';
import {
  BucketNotFoundError,
  InvalidBucketArgumentError,
  NodeNotFoundError,
  PriorityDisabledError,
} from '../errors/bucket-errors.js';
import { BulkInterruptedError } from '../errors/control-errors.js';
import { counted } from '../errors/counted.js';
import { nearest } from '../errors/nearest.js';
import { showValue } from '../errors/show-value.js';
import { unknownKey } from '../errors/wrong-value.js';
import { JOB_LIMITS, textFault } from '../jobs/limits.js';
import { JOB_PRIORITIES, type JobPriority, priorityOf, rankOf } from '../jobs/priority.js';
import { type EngineEvents } from '../observability/engine-events.js';
import {
  type BucketStore,
  type BucketView,
  type DrainedByHand,
  type LaneView,
} from '../store/bucket-store.js';

/** A bucket, as the database knows it: see {@link RatchetBuckets.list}. */
export interface BucketInfo extends Omit<BucketView, 'priority'> {
  /** It claims jobs of this priority alone. Absent: of all. */
  readonly priority?: JobPriority;
}

/** A lane, as the database knows it: see {@link RatchetBuckets.lanes}. */
export interface LaneInfo extends Omit<LaneView, 'disabled'> {
  /** Priorities that every node which serves the lane has switched off: an enqueue is refused. */
  readonly disabled: readonly JobPriority[];
}

/** Options of {@link RatchetBuckets.moveLane}. */
export interface MoveLaneOptions {
  /** Only jobs of this priority. @defaultValue all */
  readonly priority?: JobPriority | undefined;
}

export interface RatchetBucketsParts {
  readonly store: BucketStore;
  readonly messages: Pick<ClusterMessages, 'newWork'>;
  readonly events: EngineEvents;
}

/** Longest id that the node table takes. */
const NODE_ID_LENGTH = 64;

/**
 * Inject it to look at buckets, lanes and nodes, and to act on them by hand: to pause a lane, to drain a bucket, a lane or a node, to move
 * the waiting jobs of a lane to another. From any process, also one with `worker: false`: what is wanted is written to the database, and
 * the nodes that it concerns are woken and act on it.
 *
 * A drain never stops a running job: the bucket claims nothing more, gives back what it has claimed ahead, finishes what runs, and is
 * removed; then its node opens a new one, unless the node itself was drained. Every act may be repeated, and is one line in the log.
 *
 * @example
 * ```ts
 * constructor(private readonly buckets: RatchetBuckets) {}
 *
 * await this.buckets.pauseLane('mail'); // the provider is down
 * await this.buckets.moveLane('reports', 'night', { priority: 'low' });
 * await this.buckets.drainNode('web-7'); // before its machine goes
 * ```
 */
export class RatchetBuckets {
  static readonly #logger = new Logger('RatchetBuckets');

  readonly #store: BucketStore;
  readonly #messages: Pick<ClusterMessages, 'newWork'>;
  readonly #events: EngineEvents;

  constructor({ store, messages, events }: RatchetBucketsParts) {
    this.#store = store;
    this.#messages = messages;
    this.#events = events;
  }

  /**
   * Every bucket of the cluster, by lane, then age: whose it is, what it does, and what is in it.
   *
   * @example
   * const old = (await buckets.list()).filter(({ oldestBegunMs = 0 }) => oldestBegunMs > 3_600_000);
   */
  async list(): Promise<readonly BucketInfo[]> {
    return (await this.#store.buckets()).map(({ priority, ...bucket }) =>
      priority === undefined ? bucket : { ...bucket, priority: priorityOf(priority) },
    );
  }

  /**
   * Every lane that a node serves, that has live jobs, or that is paused, by name.
   *
   * @example
   * const paused = (await buckets.lanes()).filter(({ pausedAt }) => pausedAt);
   */
  async lanes(): Promise<readonly LaneInfo[]> {
    return (await this.#store.lanes()).map((lane) => ({ ...lane, disabled: lane.disabled.map(priorityOf) }));
  }

  /**
   * From now on no node claims anything of the lane, until {@link RatchetBuckets.resumeLane}. Jobs are enqueued as before, and what runs
   * ends as before. Kept in the database: restarts and new nodes change nothing of it.
   *
   * @returns whether that is new; false when the lane was paused already.
   * @throws InvalidBucketArgumentError
   *
   * @example
   * await buckets.pauseLane('mail');
   */
  async pauseLane(lane: string): Promise<boolean> {
    requireLane('pauseLane', 'lane', lane);
    const changed = await this.#store.pauseLane(lane);
    this.#say(
      `lane ${showValue(lane)} ${changed ? 'is paused: no node claims of it' : 'was paused already'}`,
    );
    await this.#mindSpelling(lane);
    this.#wake([lane]);
    return changed;
  }

  /**
   * Lets a paused lane be claimed again.
   *
   * @returns whether it was paused.
   * @throws InvalidBucketArgumentError
   *
   * @example
   * await buckets.resumeLane('mail');
   */
  async resumeLane(lane: string): Promise<boolean> {
    requireLane('resumeLane', 'lane', lane);
    const changed = await this.#store.resumeLane(lane);
    this.#say(`lane ${showValue(lane)} ${changed ? 'goes on' : 'was not paused'}`);
    if (!changed) await this.#mindSpelling(lane);
    this.#wake([lane]);
    return changed;
  }

  /**
   * Ends one bucket: it claims nothing more, gives back what it has claimed ahead, finishes what runs, and is removed by its node, which
   * then opens a new one.
   *
   * @param id - as {@link RatchetBuckets.list} has it.
   * @returns whether it was active; false when it was on its way out already.
   * @throws BucketNotFoundError when there is no such bucket (any more).
   *
   * @example
   * await buckets.drainBucket(stuck.id);
   */
  async drainBucket(id: string): Promise<boolean> {
    const drained = await this.#store.drainBucket(id);
    if (!drained) throw new BucketNotFoundError(id);
    if (drained.moved.length === 0) this.#say(`bucket ${id} is on its way out already`);
    this.#drained(drained.moved, (where) => `bucket ${id}${where} claims nothing more and ends`);
    return drained.moved.length > 0;
  }

  /**
   * Pauses a lane and ends all its buckets, on all nodes: nothing of it is running or buffered when they are gone. The nodes open new
   * ones, which claim nothing before {@link RatchetBuckets.resumeLane}.
   *
   * @returns how many buckets were active.
   * @throws InvalidBucketArgumentError
   *
   * @example
   * await buckets.drainLane('reports');
   */
  async drainLane(lane: string): Promise<number> {
    requireLane('drainLane', 'lane', lane);
    await this.#store.pauseLane(lane);
    const { moved } = await this.#store.drainLane(lane);
    this.#say(
      `lane ${showValue(lane)} is paused, and ${counted(moved.length, 'active bucket')} of it ${moved.length === 1 ? 'ends' : 'end'}`,
    );
    await this.#mindSpelling(lane);
    this.#drained(moved);
    this.#wake([lane]);
    return moved.length;
  }

  /**
   * Ends all buckets of a node, which opens no new ones until {@link RatchetBuckets.undrainNode}, or until its process starts again. It
   * stays a member of the cluster, enqueues, and is shown.
   *
   * @param id - as `RatchetMonitor.nodes()` has it.
   * @returns how many buckets were active.
   * @throws NodeNotFoundError when no node of that id is registered.
   *
   * @example
   * await buckets.drainNode('web-7');
   */
  async drainNode(id: string): Promise<number> {
    const drained = textFault(id, NODE_ID_LENGTH) ? undefined : await this.#store.drainNode(id);
    if (!drained) throw new NodeNotFoundError('drainNode', id);
    const { moved, changed, lanes } = drained;
    this.#say(
      `node ${showValue(id)} ${changed ? 'is drained: it opens no bucket' : 'was drained already'}; ${counted(moved.length, 'active bucket')} of it ${moved.length === 1 ? 'ends' : 'end'}`,
    );
    this.#drained(moved);
    this.#wake(lanes);
    return moved.length;
  }

  /**
   * Lets a drained node open buckets again.
   *
   * @returns whether it was drained.
   * @throws NodeNotFoundError when no node of that id is registered.
   *
   * @example
   * await buckets.undrainNode('web-7');
   */
  async undrainNode(id: string): Promise<boolean> {
    const node = textFault(id, NODE_ID_LENGTH) ? undefined : await this.#store.undrainNode(id);
    if (!node) throw new NodeNotFoundError('undrainNode', id);
    this.#say(`node ${showValue(id)} ${node.changed ? 'opens buckets again' : 'was not drained'}`);
    this.#wake(node.lanes);
    return node.changed;
  }

  /**
   * Moves the jobs of a lane that wait, pending or paused, to another lane. They keep all else: due time, priority, keys. What runs
   * stays, and is retried where it is; so is what is enqueued into the old lane afterwards. A thousand at a time, each a transaction
   * of its own: jobs that are just being claimed are passed over.
   *
   * @returns how many were moved.
   * @throws InvalidBucketArgumentError when `from` is `to`, or a name is none.
   * @throws PriorityDisabledError when every node that serves `to` has switched off a priority that would be moved.
   * @throws BulkInterruptedError (`retryable`) when the database failed after some were moved; they stay moved.
   *
   * @example
   * await buckets.moveLane('reports', 'night', { priority: 'low' });
   */
  async moveLane(from: string, to: string, options: MoveLaneOptions = {}): Promise<number> {
    requireLane('moveLane', 'from', from);
    requireLane('moveLane', 'to', to);
    if (from === to) throw new InvalidBucketArgumentError('moveLane', 'to', to, 'another lane than `from`');
    const priority = priorityOption(options);
    const move = { from, to, ...(priority === undefined ? {} : { priority }) };
    const [obstacle] = await this.#store.moveObstacles(move);
    if (obstacle) {
      throw new PriorityDisabledError('moveLane', to, priorityOf(obstacle.priority), obstacle.nodes);
    }
    const moved = await this.#moveAll(move);
    this.#say(
      `${counted(moved, 'job')}${priority === undefined ? '' : ` of priority "${priorityOf(priority)}"`} moved from lane ${showValue(from)} to lane ${showValue(to)}`,
    );
    await this.#mindSpelling(to);
    return moved;
  }

  async #moveAll(move: Parameters<BucketStore['move']>[0]): Promise<number> {
    let moved = 0;
    for (let more = true; more;) {
      try {
        const step = await this.#store.move(move);
        moved += step.moved;
        more = step.more;
        if (step.moved > 0) this.#wake([move.to]);
      } catch (error) {
        throw moved > 0 ? new BulkInterruptedError('moveLane', moved, moved, { cause: error }) : error;
      }
    }
    return moved;
  }

  /** Each is told as an event; with `line`, and as a line of its own. Their owners look at once. */
  #drained(moved: readonly DrainedByHand[], line?: (where: string) => string): void {
    for (const { id, lane, node } of moved) {
      this.#events.emit('bucket', { bucket: id, lane, from: 'active', to: 'completing' });
      if (line) this.#say(line(` of lane ${showValue(lane)} on node ${showValue(node.id)}`));
    }
    this.#wake(moved.map(({ lane }) => lane));
  }

  /** One for each lane wakes every stream of it, and makes its buckets ask the database. */
  #wake(lanes: readonly string[]): void {
    for (const lane of new Set(lanes)) this.#messages.newWork(lane, rankOf('normal'), { behind: true });
  }

  /** What was asked is done whatever the name; a lane that nobody knows is said to be one. */
  async #mindSpelling(lane: string): Promise<void> {
    const lanes = await this.#store.lanes().catch(() => undefined);
    const served = lanes?.filter(({ nodes }) => nodes.length > 0).map(({ name }) => name);
    if (!served || served.length === 0 || served.includes(lane)) return;
    const near = nearest(lane, served);
    RatchetBuckets.#tell(
      'warn',
      `no node serves lane ${showValue(lane)}${near === undefined ? '' : `; did you mean ${showValue(near)}?`}`,
    );
  }

  #say(line: string): void {
    RatchetBuckets.#tell('log', line);
  }

  static #tell(level: 'log' | 'warn', line: string): void {
    try {
      RatchetBuckets.#logger[level](line);
    } catch {
      // A logger that throws must not hide what was done.
    }
  }
}

function requireLane(call: string, argument: string, lane: unknown): void {
  const fault = textFault(lane, JOB_LIMITS.laneLength);
  if (fault) throw new InvalidBucketArgumentError(call, argument, lane, fault);
}

function priorityOption(options: unknown): ReturnType<typeof rankOf> | undefined {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidBucketArgumentError('moveLane', 'options', options, 'an object, or nothing');
  }
  const unknown = Object.keys(options).find((key) => key !== 'priority');
  if (unknown !== undefined) {
    throw new InvalidBucketArgumentError(
      'moveLane',
      `options.${unknown}`,
      undefined,
      unknownKey(unknown, ['priority']),
    );
  }
  const { priority } = options as { readonly priority?: unknown };
  if (priority === undefined) return undefined;
  if (!JOB_PRIORITIES.includes(priority as JobPriority)) {
    throw new InvalidBucketArgumentError('moveLane', 'options.priority', priority, JOB_PRIORITIES.join(', '));
  }
  return rankOf(priority as JobPriority);
}
