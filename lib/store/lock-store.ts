import { type NodeRef } from './job-store.js';

/**
 * Named, expiring locks (leases). A lease only saves work: nothing is correct because of one, since its holder may not have
 * noticed yet that it expired.
 *
 * - Time is the store's own, never that of the caller.
 * - The owner is the pair of id and epoch: the same id under another epoch is somebody else.
 * - Each method tries a few times, within about two seconds, when the store is away or the reply is lost, and then rejects with
 *   a `StoreError`. A lease that was taken although the call rejected expires like any other.
 */
export abstract class LockStore {
  /** Takes a lease that is free, expired, or ours already, for so long from now. False: somebody else holds it. */
  abstract tryLock(name: string, ttlMs: number, node: NodeRef): Promise<boolean>;
  /** Prolongs a lease that is still ours. False: it expired, or somebody else took it. */
  abstract renew(name: string, ttlMs: number, node: NodeRef): Promise<boolean>;
  /** Gives it up if it is ours; does nothing otherwise. */
  abstract release(name: string, node: NodeRef): Promise<void>;
}
