import { Logger } from '@nestjs/common';
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { type DataSource, type EntityManager, type QueryRunner } from 'typeorm';
import { describeError } from '../../../errors/describe-error.js';
import {
  NestedTransactionOpenError,
  TransactionBrokenError,
  TransactionCutOffError,
  TransactionEndedByHandlerError,
  TransactionOverError,
} from '../../../errors/transaction-errors.js';
import {
  type AppTransaction,
  type AppTransactionRequest,
  type AppTransactions,
  type CommitEnd,
} from '../../app-transactions.js';
import { type Row } from '../../sql-client.js';
import { cancelStatement } from './cancel-statement.js';
import { toStoreError } from './classify-fault.js';
import { connectedRunner, run } from './data-source-sql-client.js';
import { STATEMENT_GUARD_MS } from './pinned-settings.js';
import { destroySocket, guarded, within } from './sockets.js';

/** pg's own default. */
const DEFAULT_POOL_SIZE = 10;
/** A rollback that is not answered in this time costs the pool the connection. */
const ROLLBACK_MS = 5_000;
/** What is still under way at a rollback may take so long; then it is canceled. */
const ANSWER_MS = 250;

/** SQLSTATEs of sessions and servers that end, and of a COMMIT whose end the server itself does not know. */
const SAYS_NOTHING = /^(08...|25P03|25P04|40003|57P0.|58...|XX...)$/;

/** What is there at run time, in TypeORM 0.3 and 1.x alike. */
type Runner = Pick<QueryRunner, 'connect' | 'isTransactionActive' | 'manager'> & {
  isReleased: boolean;
  startTransaction: (...given: unknown[]) => Promise<void>;
  transactionDepth: number;
  query: (text: string, parameters?: unknown[], structured?: boolean) => Promise<unknown>;
  stream: (...given: unknown[]) => Promise<unknown>;
  commitTransaction: () => Promise<void>;
  rollbackTransaction: () => Promise<void>;
  release: () => Promise<void>;
  /** Gives the connection up instead of back. */
  releasePostgresConnection?: (error: unknown) => Promise<void>;
};

/** Transactions on the application's own TypeORM DataSource (0.3 and 1.x). */
export class DataSourceTransactions implements AppTransactions {
  /** @param guardMs - a statement of ours that gets no answer for so long costs the connection. */
  constructor(
    private readonly dataSource: DataSource,
    private readonly guardMs = STATEMENT_GUARD_MS,
  ) {}

  get poolSize(): number {
    const { driver, options } = this.dataSource as unknown as {
      driver?: { master?: { options?: { max?: unknown } } };
      options: { poolSize?: unknown; extra?: { max?: unknown } };
    };
    const known = [driver?.master?.options?.max, options.extra?.max, options.poolSize].map(Number);
    return known.find((size) => Number.isInteger(size) && size > 0) ?? DEFAULT_POOL_SIZE;
  }

  async begin({ owner, isolation, wanted }: AppTransactionRequest): Promise<AppTransaction | undefined> {
    const runner = await connectedRunner(this.dataSource).catch((error: unknown) => {
      throw toStoreError(error);
    });
    try {
      const client = (await runner.connect()) as object;
      const guard = <T>(reply: Promise<T>): Promise<T> => guarded(client, this.guardMs, reply);
      if (!(await wanted({ query: (text, parameters) => guard(run(runner, text, parameters)) }))) {
        await runner.release();
        return undefined;
      }
      await guard(runner.startTransaction(isolation as Parameters<QueryRunner['startTransaction']>[0]));
      return new DataSourceTransaction(runner as unknown as Runner, owner, this.guardMs);
    } catch (error) {
      await giveUp(runner, error);
      throw toStoreError(error);
    }
  }
}

type State = 'open' | 'closed' | 'settling' | 'refused' | 'sent' | 'committed' | 'over' | 'gone';

/** Whose end the calling code is part of: ours, and what subscribers of the application do when they hear of it. */
const ending = new AsyncLocalStorage<DataSourceTransaction>();

/**
 * One of them. It stands between the handler's manager and the connection: the handler may send what it likes and nest
 * transactions, but not end this one, nor send anything once it has ended itself. So nothing can come between the statement
 * that records the outcome and the COMMIT: that statement is sent when TypeORM, having told its subscribers, asks for the COMMIT.
 *
 * - `open`: the handler works.
 * - `closed`: nothing of the handler's is sent any more, only what subscribers do before the commit.
 * - `settling`: nothing but our last statement.
 * - `refused`: that statement said no.
 * - `sent`: the COMMIT is on its way.
 * - `committed`, `over`: subscribers hear of it.
 * - `gone`: the connection is another's.
 */
class DataSourceTransaction implements AppTransaction {
  readonly mark = randomUUID();
  readonly #runner: Runner;
  readonly #owner: string;
  /** The runner's own methods. */
  readonly #own: Pick<
    Runner,
    | 'connect'
    | 'query'
    | 'stream'
    | 'startTransaction'
    | 'commitTransaction'
    | 'rollbackTransaction'
    | 'release'
  >;
  readonly #inFlight = new Set<Promise<unknown>>();
  #state: State = 'open';
  readonly #guardMs: number;
  #last: () => Promise<boolean> = () => Promise.resolve(false);
  #ending: Promise<void> | undefined;
  /** Why it was ended before its handler had. */
  #reason: Error | undefined;
  readonly #whenEnding: Promise<void>;
  #tellEnding!: () => void;

  constructor(runner: Runner, owner: string, guardMs: number) {
    this.#runner = runner;
    this.#guardMs = guardMs;
    this.#owner = owner;
    this.#whenEnding = new Promise((resolve) => (this.#tellEnding = resolve));
    this.#own = {
      connect: runner.connect.bind(runner),
      startTransaction: runner.startTransaction.bind(runner),
      query: runner.query.bind(runner),
      stream: runner.stream.bind(runner),
      commitTransaction: runner.commitTransaction.bind(runner),
      rollbackTransaction: runner.rollbackTransaction.bind(runner),
      release: runner.release.bind(runner),
    };
    const { connect, startTransaction, commitTransaction, rollbackTransaction, stream } = this.#own;
    Object.assign(runner, {
      connect: () => (this.#is('gone') ? this.#refuse('connect()') : connect()),
      startTransaction: (...given: unknown[]) =>
        this.#maySend() ? startTransaction(...given) : this.#refuse('START TRANSACTION'),
      query: (...given: Parameters<Runner['query']>) => this.#send(...given),
      stream: (...given: unknown[]) => this.#ifOpen(given[0], () => stream(...given)),
      commitTransaction: () => this.#nested('commitTransaction()', commitTransaction),
      rollbackTransaction: () => this.#nested('rollbackTransaction()', rollbackTransaction),
      // TypeORM releases what is still connected when the application closes its DataSource.
      release: () => this.#ending ?? Promise.reject(new TransactionEndedByHandlerError(owner, 'release()')),
    });
  }

  get manager(): EntityManager {
    return this.#runner.manager;
  }

  query(text: string, parameters: readonly unknown[]): Promise<Row[]> {
    // Within the call, as the store's enlistment has it.
    const reply = run(this.#own as unknown as QueryRunner, text, parameters);
    return this.#client().then(
      (client) => guarded(client, this.#guardMs, reply),
      () => reply,
    );
  }

  async close(): Promise<void> {
    if (this.#is('open')) this.#state = 'closed';
    await Promise.race([this.#quiet(), this.#whenEnding]);
    if (this.#ending) throw this.#reason ?? new TransactionCutOffError(this.#owner);
    const { isReleased, isTransactionActive, transactionDepth } = this.#runner;
    // TypeORM releases a runner whose connection is lost; the handler cannot.
    if (isReleased) throw new TransactionCutOffError(this.#owner);
    if (!isTransactionActive) throw new TransactionEndedByHandlerError(this.#owner, 'what it called');
    if (transactionDepth > 1) throw new NestedTransactionOpenError(this.#owner);
  }

  async commit(last: () => Promise<boolean>): Promise<CommitEnd> {
    this.#last = last;
    try {
      await ending.run(this, () => this.#own.commitTransaction());
    } catch (error) {
      if (this.#is('refused')) return 'refused';
      if (this.#is('sent') && !isRefusal(error)) {
        destroySocket(await this.#client());
        return { inDoubt: error };
      }
      if (!this.#is('committed')) throw error;
      new Logger('RatchetTransaction').warn(
        `${this.#owner}: a subscriber failed after the commit, which stands: ${describeError(error).message}`,
      );
    }
    // A subscriber that left a nested transaction open: TypeORM has ended that instead.
    if (!this.#is('committed')) throw new NestedTransactionOpenError(this.#owner);
    return 'committed';
  }

  end(reason?: Error): Promise<void> {
    if (!this.#ending) {
      this.#reason = reason;
      this.#ending = this.#end();
      this.#tellEnding();
    }
    return this.#ending;
  }

  async abandon(reason: Error): Promise<void> {
    if (!this.#is('settling') && !this.#is('sent')) return this.end(reason);
    // What was sent is answered by the socket's end, and whoever waits for it ends the transaction.
    destroySocket(await this.#client());
    await this.#whenEnding;
    await this.#ending;
  }

  async #end(): Promise<void> {
    const runner = this.#runner;
    const committed = this.#state === 'committed';
    this.#state = 'over';
    try {
      if (runner.isReleased) return;
      if (!committed && runner.isTransactionActive) await this.#rollBack();
      await this.#own.release();
    } catch (error) {
      new Logger('RatchetTransaction').warn(
        `${this.#owner}: its transaction could not be rolled back, so its connection is closed: ${describeError(error).message}`,
      );
      await this.#giveUp(error);
    } finally {
      this.#state = 'gone';
      // TypeORM would refuse with an error of its own that does not say why.
      runner.isReleased = false;
    }
  }

  async #rollBack(): Promise<void> {
    const runner = this.#runner;
    const canceled = !(await within(ANSWER_MS, this.#quiet()));
    if (canceled) {
      await cancelStatement(await this.#client());
      // What was sent behind it is refused by the broken transaction. Only then is the connection free for the ROLLBACK.
      await this.#answered(this.#quiet());
    }
    // Whatever savepoints are open: all of it.
    runner.transactionDepth = 1;
    await this.#answered(ending.run(this, () => this.#own.rollbackTransaction()));
    if (runner.isTransactionActive) throw new Error('a nested transaction began meanwhile');
    if (canceled) await this.#giveUp(new Error('a statement was canceled'));
  }

  /** What the handler has sent is answered. */
  #quiet(): Promise<unknown> {
    return Promise.allSettled(this.#inFlight);
  }

  /** Costs the connection when it takes too long. */
  async #answered(reply: Promise<unknown>): Promise<void> {
    if (!(await within(ROLLBACK_MS, reply))) {
      destroySocket(await this.#client());
      throw new Error(`no answer within ${String(ROLLBACK_MS)} ms`);
    }
    await reply;
  }

  #giveUp(error: unknown): Promise<void> {
    const giving = this.#runner.releasePostgresConnection?.bind(this.#runner);
    return giveUp(
      { release: this.#own.release, ...(giving && { releasePostgresConnection: giving }) },
      error,
    );
  }

  /** What the manager sends, and what the runner sends of itself to end the transaction. */
  #send(...given: Parameters<Runner['query']>): Promise<unknown> {
    const [text] = given;
    if (text === 'COMMIT' && ending.getStore() === this)
      return this.#is('closed') ? this.#commit() : this.#refuse(text);
    return this.#ifOpen(text, () => this.#own.query(...given));
  }

  /** Past the runner, which does not tell what was answered: a broken transaction answers COMMIT with ROLLBACK, not with an error. */
  async #commit(): Promise<void> {
    this.#state = 'settling';
    await Promise.race([this.#quiet(), this.#whenEnding]);
    if (!(await this.#last())) {
      this.#state = 'refused';
      throw new TransactionOverError(this.#owner, 'COMMIT');
    }
    const client = await this.#client();
    this.#state = 'sent';
    const { command } = await guarded(client, this.#guardMs, client.query('COMMIT'));
    if (command !== 'COMMIT') throw new TransactionBrokenError(this.#owner);
    this.#state = 'committed';
  }

  #client(): Promise<{ query(text: string): Promise<{ command: string }> }> {
    return this.#own.connect() as Promise<{ query(text: string): Promise<{ command: string }> }>;
  }

  /** Ours do not come this way. */
  #nested(call: string, end: () => Promise<void>): Promise<void> {
    if (!this.#maySend()) return this.#refuse(call);
    if (this.#runner.transactionDepth <= 1)
      return Promise.reject(new TransactionEndedByHandlerError(this.#owner, call));
    return end();
  }

  #refuse(what: unknown): Promise<never> {
    return Promise.reject(this.#reason ?? new TransactionOverError(this.#owner, what));
  }

  #is(state: State): boolean {
    return this.#state === state;
  }

  #maySend(): boolean {
    if (this.#state === 'open') return true;
    return ending.getStore() === this && ['closed', 'committed', 'over'].includes(this.#state);
  }

  #ifOpen<T>(what: unknown, send: () => Promise<T>): Promise<T> {
    if (!this.#maySend()) return this.#refuse(what);
    const reply = send();
    this.#inFlight.add(reply);
    const done = (): void => void this.#inFlight.delete(reply);
    reply.then(done, done);
    return reply;
  }
}

/**
 * The server has said no to a COMMIT, whatever it said: a deferred trigger may raise anything. Not so when the session or the server
 * ended: then the answer says nothing of the COMMIT.
 */
function isRefusal(error: unknown): boolean {
  const { code } = describeError(error);
  if (code === 'TRANSACTION_BROKEN') return true;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !SAYS_NOTHING.test(code);
}

async function giveUp(
  runner: Pick<Runner, 'release' | 'releasePostgresConnection'>,
  error: unknown,
): Promise<void> {
  try {
    if (runner.releasePostgresConnection) await runner.releasePostgresConnection(error);
    else await runner.release();
  } catch {
    // The pool has nothing of it any more.
  }
}
