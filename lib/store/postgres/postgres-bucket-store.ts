import { isUuid } from '../../jobs/job-id.js';
import {
  BucketStore,
  type BucketView,
  type Drained,
  type DrainedByHand,
  type DrainedNode,
  type LaneMove,
  type LaneView,
  type MoveStep,
  type SwitchedOff,
} from '../bucket-store.js';
import { type Row } from '../sql-client.js';
import { type PostgresJobStore } from './postgres-job-store.js';
import { type MakeStatement, type PostgresSession } from './postgres-session.js';
import { ownTransaction } from './schedules/own-transaction.js';
import { decodeBucket, selectBuckets } from './statements/bucket-list.js';
import {
  cordonNode,
  drainBucket,
  drainBucketsOfLane,
  drainBucketsOfNode,
  uncordonNode,
} from './statements/drain.js';
import { agreeOnDisabled, decodeLane, pauseLane, resumeLane, selectLanes } from './statements/lanes.js';
import { MOVE_CHUNK, moveLane, moveParameters, selectMoveObstacles } from './statements/move-lane.js';

/**
 * Buckets, lanes and nodes under the hands of people, on the application's connections, so that a process without an engine has it all.
 * Each act is a transaction of its own that goes by the indexes and waits two seconds for a lock. Opens and closes nothing itself.
 */
export class PostgresBucketStore extends BucketStore {
  readonly #session: PostgresSession;

  constructor(store: PostgresJobStore) {
    super();
    this.#session = store.session;
  }

  override async buckets(): Promise<readonly BucketView[]> {
    return (await this.#send(selectBuckets, [this.#session.offsetMs])).map(decodeBucket);
  }

  override async lanes(): Promise<readonly LaneView[]> {
    return (await this.#send(selectLanes, [])).map(decodeLane);
  }

  override async pauseLane(lane: string): Promise<boolean> {
    return (await this.#send(pauseLane, [this.#session.offsetMs, lane])).length > 0;
  }

  override async resumeLane(lane: string): Promise<boolean> {
    return (await this.#send(resumeLane, [lane])).length > 0;
  }

  override async drainBucket(id: string): Promise<Drained | undefined> {
    if (!isUuid(id)) return undefined;
    const rows = await this.#send(drainBucket, [this.#session.offsetMs, id]);
    return rows.length === 0 ? undefined : { moved: rows.filter(({ row }) => row !== null).map(drainedOf) };
  }

  override async drainLane(lane: string): Promise<Drained> {
    const rows = await this.#send(drainBucketsOfLane, [this.#session.offsetMs, lane]);
    return { moved: rows.map(drainedOf) };
  }

  /** Two transactions: the beats of the node must not wait for the turns of its buckets. */
  override async drainNode(id: string): Promise<DrainedNode | undefined> {
    const node = await this.#node(cordonNode, [this.#session.offsetMs, id]);
    if (!node) return undefined;
    const rows = await this.#send(drainBucketsOfNode, [
      this.#session.offsetMs,
      node.node.id,
      node.node.epoch,
    ]);
    return { ...node, moved: rows.map(drainedOf) };
  }

  override undrainNode(id: string): Promise<DrainedNode | undefined> {
    return this.#node(uncordonNode, [id]);
  }

  override async moveObstacles({ from, to, priority }: LaneMove): Promise<readonly SwitchedOff[]> {
    const rows = await this.#send(selectMoveObstacles, [from, to, priority ?? null]);
    return rows.map(({ row }) => JSON.parse(row as string) as SwitchedOff);
  }

  override async move(move: LaneMove): Promise<MoveStep> {
    const [row] = await this.#send(moveLane, moveParameters(move));
    const moved = Number(row?.['moved']);
    return { moved, more: moved === MOVE_CHUNK };
  }

  override async agreeOnPriorities(): Promise<void> {
    await this.#session.service(agreeOnDisabled);
  }

  async #node(make: MakeStatement, parameters: readonly unknown[]): Promise<DrainedNode | undefined> {
    const [row] = await this.#send(make, parameters);
    return row && { ...(JSON.parse(row['row'] as string) as Omit<DrainedNode, 'moved'>), moved: [] };
  }

  #send(make: MakeStatement, parameters: readonly unknown[]): Promise<Row[]> {
    return ownTransaction(this.#session, (inside) => this.#session.app(make, parameters, inside));
  }
}

function drainedOf({ row }: Row): DrainedByHand {
  return JSON.parse(row as string) as DrainedByHand;
}
