import { faultKindOf } from '../store-fault.js';
import { type PostgresSession } from './postgres-session.js';
import { ensurePartitions } from './statements/partitions.js';

/** Makes today's partitions, by the store's clock. */
export async function ensureToday(session: PostgresSession): Promise<void> {
  await session.app(ensurePartitions, [0, session.offsetMs]);
}

/** Runs what writes history outside of a caller's transaction; when the day has no partition yet it is made, and the work is done again. */
export async function withPartitions<T>(session: PostgresSession, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (faultKindOf(error) !== 'missing_partition') throw error;
    await ensureToday(session);
    return work();
  }
}
