import { type StoreTransaction } from '../../job-store.js';
import { type MakeStatement, type PostgresSession } from '../postgres-session.js';
import { setForStep } from '../query/bulk-control.js';
import { retriedRollback } from '../retried-rollback.js';
import { KEY_LOCK_TIMEOUT } from '../statements/insert-jobs.js';

const readCommitted: MakeStatement = () => ({ text: 'set transaction isolation level read committed' });

/**
 * A transaction of our own on the application's side, each of whose statements looks anew, whatever the application's default is,
 * waits two seconds for a lock at most, and goes by the indexes: the application's connections pin no plans. What is rolled back is
 * done again.
 */
export function ownTransaction<T>(
  session: PostgresSession,
  work: (inside: StoreTransaction) => Promise<T>,
): Promise<T> {
  return retriedRollback(() =>
    session.transaction(async (inside) => {
      await session.app(readCommitted, [], inside);
      await session.app(setForStep, [KEY_LOCK_TIMEOUT], inside);
      return work(inside);
    }),
  );
}
