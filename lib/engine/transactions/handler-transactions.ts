import { Logger, type OnModuleInit } from '@nestjs/common';
import { type Clock } from '../../cluster/clock.js';
import {
  TransactionalNeedsDataSourceError,
  TransactionalPoolTooSmallError,
} from '../../errors/transaction-errors.js';
import { type HandlerRegistry, type RegisteredHandler } from '../../jobs/handler-registry.js';
import { type DebugPoints } from '../../observability/debug-points.js';
import { type EngineEvents } from '../../observability/engine-events.js';
import { type AppTransactions } from '../../store/app-transactions.js';
import { type ClaimedJob, type JobStore } from '../../store/job-store.js';
import { EngineFaults } from '../engine-faults.js';
import { guardedLogger } from '../line-logger.js';
import { CalledOff, Patience } from '../patience.js';
import { Grace } from './grace.js';
import { HandlerTransaction } from './handler-transaction.js';
import { Permits } from './permits.js';

/** Left for what runs beside transactional handlers: with all connections in their hands, two that ask for one more deadlock. */
const LEFT_TO_OTHERS = 2;
const LEAST_POOL_SIZE = LEFT_TO_OTHERS + 1;

export interface HandlerTransactionsParts {
  readonly store: JobStore;
  /** Undefined: the module has no DataSource. */
  readonly source: AppTransactions | undefined;
  readonly handlers: HandlerRegistry;
  /** False: nothing runs here, and nothing is needed for it. */
  readonly worker: boolean;
  /** Of real time: it waits for the database. */
  readonly clock: Clock;
  readonly events: EngineEvents;
  readonly debug: DebugPoints;
}

/**
 * The transactions that transactional handlers run in: begins them, as many at once as the app's pool allows, and asks for the
 * fate of those whose commit was not answered.
 */
export class HandlerTransactions implements OnModuleInit {
  readonly #parts: HandlerTransactionsParts;
  readonly #patience: Patience;
  readonly #grace = new Grace();
  readonly #open = new Set<HandlerTransaction>();
  #permits: Permits | undefined;

  constructor(parts: HandlerTransactionsParts) {
    this.#parts = parts;
    const { clock, events } = parts;
    const faults = new EngineFaults(clock, guardedLogger(new Logger('RatchetTransaction')), events);
    this.#patience = new Patience(clock, faults);
    this.#patience.insist();
  }

  /** How many run at once; undefined without transactional handlers. */
  get limit(): { readonly atOnce: number; readonly poolSize: number } | undefined {
    const { source, handlers, worker } = this.#parts;
    if (!worker || !source || transactionalOf(handlers).length === 0) return undefined;
    return { atOnce: atOnceOf(source), poolSize: source.poolSize };
  }

  /** @throws TransactionalNeedsDataSourceError, TransactionalPoolTooSmallError */
  onModuleInit(): void {
    const { handlers, worker } = this.#parts;
    const transactional = worker ? transactionalOf(handlers) : [];
    if (transactional.length > 0) this.#sourceFor(transactional.map(({ owner }) => owner));
  }

  /**
   * Begins one when its turn has come. `undefined`: the claim no longer stands, and there is nothing to run.
   *
   * @throws StoreError when there is no connection to be had, the signal's reason when it is aborted first.
   */
  async begin(
    job: ClaimedJob,
    { owner, transactional }: Pick<RegisteredHandler, 'owner' | 'transactional'>,
    signal: AbortSignal,
  ): Promise<HandlerTransaction | undefined> {
    const { store, debug } = this.#parts;
    const source = this.#sourceFor([owner]);
    const permits = (this.#permits ??= new Permits(atOnceOf(source)));
    await permits.take(signal);
    try {
      const transaction = await source.begin({
        owner,
        isolation: transactional?.isolation,
        wanted: (connection) => store.stands(job, connection),
      });
      if (!transaction) {
        permits.giveBack();
        return undefined;
      }
      const begun: HandlerTransaction = new HandlerTransaction({
        job,
        owner,
        transaction,
        store,
        debug,
        patience: this.#patience,
        grace: this.#grace,
        onEnd: () => {
          this.#open.delete(begun);
          permits.giveBack();
        },
      });
      await begun.enlist();
      this.#open.add(begun);
      return begun;
    } catch (error) {
      permits.giveBack();
      throw error;
    }
  }

  /**
   * After the drain: nothing that is still open may keep its locks, nor the application's pool from its end. What is in doubt stays
   * so: the database knows, and whoever takes the job's row next finds it as it is.
   */
  async close(): Promise<void> {
    this.#patience.callOff();
    const stopped = new CalledOff('the node has stopped');
    await Promise.all([...this.#open].map((transaction) => transaction.abandon(stopped)));
  }

  #sourceFor(owners: readonly string[]): AppTransactions {
    const { source } = this.#parts;
    if (!source) throw new TransactionalNeedsDataSourceError(owners);
    const { poolSize } = source;
    if (poolSize < LEAST_POOL_SIZE)
      throw new TransactionalPoolTooSmallError(owners, poolSize, LEAST_POOL_SIZE);
    return source;
  }
}

function atOnceOf({ poolSize }: AppTransactions): number {
  return Math.max(1, poolSize - LEFT_TO_OTHERS);
}

function transactionalOf(handlers: HandlerRegistry): readonly RegisteredHandler[] {
  return handlers.all().filter(({ transactional }) => transactional !== undefined);
}
