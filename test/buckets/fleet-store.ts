import { createStore } from '../support/store.js';
import { type Statement } from '../../lib/store/sql-client.js';
import { PostgresBucketStore } from '../../lib/store/postgres/postgres-bucket-store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { StoreError } from '../../lib/store/store-fault.js';

/** A change of the SQL that breaks the store on purpose. */
export interface Edit {
  readonly from: string;
  readonly to: string;
}

/** The PostgreSQL store as the processes of a fleet use it: one whose process dies in the middle of something, and one beside it. */
export class FleetStore {
  readonly store: PostgresJobStore;
  /** Another process, with connections of its own. */
  readonly beside: PostgresJobStore;
  readonly operator: PostgresBucketStore;
  /** Edits that have changed something. */
  readonly used = new Set<Edit>();
  readonly #edits: readonly Edit[];
  /** Statements of the service connection that the dying process still sends; undefined: it lives. */
  #left: number | undefined;

  private constructor(url: string, edits: readonly Edit[]) {
    this.#edits = edits;
    this.store = this.#broken(createStore(url));
    this.beside = this.#broken(createStore(url));
    this.operator = new PostgresBucketStore(this.store);
    const { service } = this.store.session.engine;
    const send = service.query.bind(service);
    service.query = (statement, parameters) => {
      if (this.#left === 0) return Promise.reject(new StoreError('unknown', 'the process died', undefined));
      if (this.#left !== undefined) this.#left -= 1;
      return send(statement, parameters);
    };
  }

  static async open(url: string, edits: readonly Edit[] = []): Promise<FleetStore> {
    const fleet = new FleetStore(url, edits);
    await fleet.store.open();
    await fleet.beside.open();
    return fleet;
  }

  async close(): Promise<void> {
    await Promise.all([this.store.close(), this.beside.close()]);
  }

  travel(offsetMs: number): void {
    this.store.travel(offsetMs);
    this.beside.travel(offsetMs);
  }

  /** The process of `work` sends so many statements, and no more. True: it died on the way. */
  async dyingAfter(statements: number | undefined, work: () => Promise<unknown>): Promise<boolean> {
    this.#left = statements;
    try {
      await work();
      return this.#left === 0 && statements !== undefined;
    } catch (error) {
      if (this.#left !== 0) throw error;
      return true;
    } finally {
      this.#left = undefined;
    }
  }

  #broken(store: PostgresJobStore): PostgresJobStore {
    const { session } = store;
    const { engine } = session;
    const made = session.statement.bind(session);
    session.statement = (make) => this.#edit(made(make));
    const exchange = engine.exchange.bind(engine);
    engine.exchange = (statement, parameters) => exchange(this.#edit(statement), parameters);
    return store;
  }

  #edit<S extends Statement>(statement: S): S {
    let { text } = statement;
    for (const edit of this.#edits) {
      const edited = text.replaceAll(edit.from, edit.to);
      if (edited !== text) this.used.add(edit);
      text = edited;
    }
    return { ...statement, text };
  }
}

/** A signal that is aborted when it was asked so many times. */
export function abortedAfter(looks: number): AbortSignal {
  const controller = new AbortController();
  const { signal } = controller;
  let left = looks;
  signal.throwIfAborted = () => {
    if (left === 0) controller.abort();
    left -= 1;
    AbortSignal.prototype.throwIfAborted.call(signal);
  };
  return signal;
}
