import { type NodeRef } from './job-store.js';

/** Named, expiring locks (leases) by database time, re-entrant for the same (id, epoch). A lease only saves work: nothing is correct because of one. */
export abstract class LockStore {
  /** Takes or prolongs the lease. False: another node holds it. */
  abstract tryLock(name: string, ttlMs: number, node: NodeRef): Promise<boolean>;
  /** Prolongs a lease that is still ours. False: it was lost. */
  abstract renew(name: string, ttlMs: number, node: NodeRef): Promise<boolean>;
  /** Gives it up if it is ours. */
  abstract release(name: string, node: NodeRef): Promise<void>;
}
