/** Due jobs that nobody serves, and the buckets that are made for them: parts of the port `JobStore`. */

import { type PriorityRank } from '../jobs/priority.js';
import { type BucketRef, type NodeRef } from './membership.js';

/** Which jobs a node can run. */
interface Runnable {
  readonly handlers: readonly { readonly name: string; readonly version: number }[];
}

export interface StarvingRequest extends Runnable {
  readonly node: NodeRef;
  /** Jobs that have been due for longer, by the database's clock. */
  readonly afterMs: number;
  /** Fallback buckets that the node knows to be its own. */
  readonly known: readonly string[];
}

/** Due jobs of one priority that this node could run, in a lane where nobody serves that priority. */
export interface StarvingStream {
  readonly lane: string;
  readonly priority: PriorityRank;
  /** How many are due for long; of large numbers a part is counted, at least 1000. */
  readonly due: number;
  /** How long the one has been due that has waited longest. */
  readonly oldestMs: number;
  /** Some of their names (at most 10). */
  readonly names: readonly string[];
}

export interface StarvingAnswer {
  readonly streams: readonly StarvingStream[];
  /** Lanes that live nodes do serve, in one priority at least. */
  readonly served: readonly string[];
}

export interface FallbackRequest {
  readonly node: NodeRef;
  readonly lane: string;
  /** As in {@link StarvingRequest}: one that the node does not know is its own from an answer that was lost. */
  readonly known: readonly string[];
}

export interface FallbackNeedRequest extends Runnable {
  readonly bucket: BucketRef;
}

/**
 * `starving`: jobs are pending that this node can run and that no other bucket serves. `served`: such jobs are pending, and all have
 * a bucket of their own again. `idle`: none is pending.
 */
export type FallbackNeed = 'starving' | 'served' | 'idle';
