import { type NodeRef } from '../job-store.js';
import { LockStore } from '../lock-store.js';
import { retriedLease } from './lease-retry.js';
import { type PostgresJobStore } from './postgres-job-store.js';
import { type MakeStatement, type PostgresSession } from './postgres-session.js';
import { releaseLease, renewLease, takeLease } from './statements/leases.js';

/** Leases as rows, on the job store's service connection and by its clock. Opens and closes nothing itself. */
export class PostgresLockStore extends LockStore {
  readonly #session: PostgresSession;

  constructor(store: PostgresJobStore) {
    super();
    this.#session = store.session;
  }

  override tryLock(name: string, ttlMs: number, node: NodeRef): Promise<boolean> {
    return this.#applies(takeLease, this.#parameters(name, ttlMs, node));
  }

  override renew(name: string, ttlMs: number, node: NodeRef): Promise<boolean> {
    return this.#applies(renewLease, this.#parameters(name, ttlMs, node));
  }

  override async release(name: string, node: NodeRef): Promise<void> {
    await this.#applies(releaseLease, [name, node.id, node.epoch]);
  }

  /** Whether it touched the lease. */
  async #applies(make: MakeStatement, parameters: unknown[]): Promise<boolean> {
    return (await retriedLease(() => this.#session.service(make, parameters))).length > 0;
  }

  #parameters(name: string, ttlMs: number, node: NodeRef): unknown[] {
    return [this.#session.offsetMs, name, ttlMs, node.id, node.epoch];
  }
}
