import { type NodeRef, type RescueReport } from '../job-store.js';
import {
  type BucketStatus,
  type BuriedJob,
  type DeadNode,
  type DrainedBucket,
  type LostReport,
  type RescueRequest,
} from '../membership.js';
import { faultKindOf, isLockTimeout } from '../store-fault.js';
import { agreeOnPriorities } from './agree-on-priorities.js';
import { type PostgresSession } from './postgres-session.js';
import { ensurePartitions } from './statements/partitions.js';
import {
  adoptBucket,
  deleteDrainedBucket,
  loseBucket,
  removeStaleNodes,
  rescueClaims,
  returnBucket,
  selectClaims,
  selectMissingBuckets,
  selectUnownedBuckets,
} from './statements/rescue.js';

/** Claims that one statement gives back. */
export const RESCUE_CHUNK = 1_000;

/** What became of the claims of a bucket; `stuck` ones could not be given back. */
interface GivenBack {
  recovered: number;
  failed: number;
  unbegun: number;
  readonly buried: BuriedJob[];
  readonly stuck: string[];
}

/** Claims of a bucket as they are taken back: whose, and on which terms. */
interface GiveBack {
  readonly bucket: string;
  /** For the closed executions; null when nobody knows. */
  readonly nodeId: string | null;
  readonly maxCrashRedeliveries: number;
}

/**
 * Takes work back from nodes that stopped: the whole way of a bucket from its owner's status over `lost` and `draining` to its
 * end. There is no other path. Each step is a statement of its own, safe to repeat after any failure and beside any other
 * node that does the same:
 *
 * 1. Nodes past the grace lose their rows. From then on their buckets have no owner.
 * 2. A bucket without an owner becomes `lost`, in a statement that waits for the turn in flight. Nothing is claimed into it any more,
 *    so that a plain count of 0 is final.
 * 3. One node takes it (`draining`), gives its claims back in chunks, and deletes it. When that node dies too, the bucket has
 *    no owner again.
 *
 * A row that cannot be given back stops neither the others nor the other buckets. Its bucket is left alone for a few seconds, by
 * every node.
 */
export class Rescue {
  constructor(private readonly session: PostgresSession) {}

  /** What has no living owner, whoever's it was. */
  async lost(
    { node, maxCrashRedeliveries, graceMs }: RescueRequest,
    signal?: AbortSignal,
  ): Promise<LostReport> {
    const faults: { what: string; error: unknown }[] = [];
    const dead = graceMs === undefined ? [] : await this.#removeStaleNodes(node, graceMs);
    const drained = await this.#buckets(null, node, maxCrashRedeliveries, faults, signal);
    return { dead, drained, faults };
  }

  /** What older epochs of a node's own id hold. Rejects with the first fault: the caller tries again. */
  async own(node: NodeRef, maxCrashRedeliveries: number): Promise<RescueReport> {
    const faults: { what: string; error: unknown }[] = [];
    const drained = await this.#buckets(node.id, node, maxCrashRedeliveries, faults);
    if (faults[0]) throw faults[0].error;
    return sum(drained);
  }

  /** What runs in buckets that do not exist, into which nothing can be claimed either. */
  async orphans(maxCrashRedeliveries: number, signal?: AbortSignal): Promise<RescueReport> {
    const rows = await this.session.service(selectMissingBuckets);
    let recovered = 0;
    let failed = 0;
    let unbegun = 0;
    const buried: BuriedJob[] = [];
    for (const { id } of rows) {
      const how = { bucket: id as string, nodeId: null, maxCrashRedeliveries };
      const report = await this.#withPartitions(() => this.#giveBack(how, signal));
      recovered += report.recovered;
      failed += report.failed;
      unbegun += report.unbegun;
      buried.push(...report.buried);
    }
    return { buckets: rows.length, recovered, failed, ...counted(unbegun), ...named(buried) };
  }

  async #removeStaleNodes(node: NodeRef, graceMs: number): Promise<DeadNode[]> {
    const rows = await this.session.service(removeStaleNodes, [this.session.offsetMs, graceMs, node.id]);
    if (rows.length > 0) await agreeOnPriorities(this.session);
    return rows.map((row) => ({
      id: row['id'] as string,
      epoch: row['epoch'] as string,
      host: row['host'] as string,
      pid: row['pid'] as number,
      heartbeatAgeMs: row['age'] as number,
    }));
  }

  async #buckets(
    ofNode: string | null,
    node: NodeRef,
    maxCrashRedeliveries: number,
    faults: { what: string; error: unknown }[],
    signal?: AbortSignal,
  ): Promise<DrainedBucket[]> {
    const drained: DrainedBucket[] = [];
    const unowned = [this.session.offsetMs, ofNode, node.id, node.epoch];
    for (const { id } of await this.session.service(selectUnownedBuckets, unowned)) {
      signal?.throwIfAborted();
      try {
        const drain = (): Promise<DrainedBucket | undefined> =>
          this.#bucket(id as string, node, maxCrashRedeliveries, signal);
        const bucket = await this.#withPartitions(drain);
        if (bucket) drained.push(bucket);
      } catch (error) {
        signal?.throwIfAborted();
        faults.push({ what: `bucket ${id as string}`, error });
        // Without a database the others fail as well.
        if (faultKindOf(error) === 'unknown') break;
      }
    }
    return drained;
  }

  /** Undefined: another node has it, or it is gone. */
  async #bucket(
    id: string,
    node: NodeRef,
    maxCrashRedeliveries: number,
    signal?: AbortSignal,
  ): Promise<DrainedBucket | undefined> {
    const { session } = this;
    const [lost] = await session.service(loseBucket, [session.offsetMs, id, node.id, node.epoch]);
    const [row] = await session.service(adoptBucket, [session.offsetMs, id, node.id, node.epoch]);
    if (!row) return undefined;
    const owner = { id: row['node_id'] as string, epoch: row['node_epoch'] as string };
    // For the next rescue, whoever makes it. What a fault leaves behind all the same, this node takes up again itself.
    const giveUp = (stuck: boolean): Promise<unknown> =>
      session.service(returnBucket, [session.offsetMs, id, row['epoch'], stuck]);
    let report: GivenBack;
    try {
      report = await this.#giveBack({ bucket: id, nodeId: owner.id, maxCrashRedeliveries }, signal);
    } catch (error) {
      await giveUp(false).catch(() => undefined);
      throw error;
    }
    if (report.stuck.length > 0) await giveUp(true);
    else await session.service(deleteDrainedBucket, [id, row['epoch']]);
    const { buried, unbegun, ...counts } = report;
    const was = lost?.['was'] as BucketStatus | undefined;
    return {
      id,
      lane: row['lane'] as string,
      node: owner,
      ...(was === undefined ? {} : { was }),
      ...counts,
      ...counted(unbegun),
      ...named(buried),
    };
  }

  /** The closed executions need the partition of their day; a cluster may have been away for weeks. */
  async #withPartitions<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (faultKindOf(error) !== 'missing_partition') throw error;
      await this.session.service(ensurePartitions, [0, this.session.offsetMs]);
      return work();
    }
  }

  async #giveBack(how: GiveBack, signal?: AbortSignal): Promise<GivenBack> {
    const total: GivenBack = { recovered: 0, failed: 0, unbegun: 0, buried: [], stuck: [] };
    for (;;) {
      signal?.throwIfAborted();
      const rows = await this.session.service(selectClaims, [how.bucket, total.stuck, RESCUE_CHUNK]);
      if (rows.length === 0) return total;
      const ids = rows.map(({ id }) => id as string);
      const before = sumOf(total);
      await this.#claims(how, ids, total, false);
      // Somebody has these rows locked: skipping them is no proof of an empty bucket.
      if (before === sumOf(total)) await this.#await(how, ids, total);
    }
  }

  async #await(how: GiveBack, ids: readonly string[], total: GivenBack): Promise<void> {
    try {
      await this.#claims(how, ids, total, true);
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      total.stuck.push(...ids);
    }
  }

  /** Halves a page that fails until the row that is to blame stands alone. */
  async #claims(how: GiveBack, ids: readonly string[], total: GivenBack, wait: boolean): Promise<void> {
    const { bucket, maxCrashRedeliveries, nodeId } = how;
    try {
      const parameters = [this.session.offsetMs, bucket, maxCrashRedeliveries, nodeId, ids];
      const [row] = await this.session.service(rescueClaims(wait), parameters);
      total.recovered += row?.['recovered'] as number;
      total.failed += row?.['failed'] as number;
      total.unbegun += row?.['unbegun'] as number;
      const buried = row?.['buried'] as string | null | undefined;
      if (buried) total.buried.push(...(JSON.parse(buried) as BuriedJob[]));
    } catch (error) {
      if (faultKindOf(error) !== 'bad_row') throw error;
      if (ids.length === 1) {
        total.stuck.push(...ids);
        return;
      }
      const half = Math.ceil(ids.length / 2);
      await this.#claims(how, ids.slice(0, half), total, wait);
      await this.#claims(how, ids.slice(half), total, wait);
    }
  }
}

const sumOf = ({ recovered, failed, unbegun, stuck }: GivenBack): number =>
  recovered + failed + unbegun + stuck.length;

const counted = (unbegun: number): { unbegun?: number } => (unbegun === 0 ? {} : { unbegun });

/** Absent when there are none. */
function named(buried: readonly BuriedJob[]): { buried?: readonly BuriedJob[] } {
  return buried.length === 0 ? {} : { buried };
}

function sum(drained: readonly DrainedBucket[]): RescueReport {
  return {
    buckets: drained.length,
    recovered: drained.reduce((count, bucket) => count + bucket.recovered, 0),
    failed: drained.reduce((count, bucket) => count + bucket.failed, 0),
    ...counted(drained.reduce((count, bucket) => count + (bucket.unbegun ?? 0), 0)),
    ...named(drained.flatMap((bucket) => bucket.buried ?? [])),
  };
}
