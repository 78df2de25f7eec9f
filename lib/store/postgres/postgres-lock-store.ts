import { type NodeRef } from '../job-store.js';
import { LockStore } from '../lock-store.js';
import { type PostgresJobStore } from './postgres-job-store.js';
import { type PostgresSession } from './postgres-session.js';
import { releaseLease, renewLease, takeLease } from './statements/leases.js';

/** Leases as rows, on the job store's service connection and by its clock. Opens and closes nothing itself. */
export class PostgresLockStore extends LockStore {
  readonly #session: PostgresSession;

  constructor(store: PostgresJobStore) {
    super();
    this.#session = store.session;
  }

  override async tryLock(name: string, ttlMs: number, node: NodeRef): Promise<boolean> {
    return (await this.#session.service(takeLease, this.#parameters(name, ttlMs, node))).length > 0;
  }

  override async renew(name: string, ttlMs: number, node: NodeRef): Promise<boolean> {
    return (await this.#session.service(renewLease, this.#parameters(name, ttlMs, node))).length > 0;
  }

  override async release(name: string, node: NodeRef): Promise<void> {
    await this.#session.service(releaseLease, [name, node.id, node.epoch]);
  }

  #parameters(name: string, ttlMs: number, node: NodeRef): unknown[] {
    return [this.#session.offsetMs, name, ttlMs, node.id, node.epoch];
  }
}
