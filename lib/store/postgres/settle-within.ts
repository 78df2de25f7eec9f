import { type Settlement, type StoreTransaction } from '../job-store.js';
import { type PostgresSession } from './postgres-session.js';
import { selectParentsStand } from './statements/keys.js';
import { awaitClaim, recordWithin, selectFate } from './statements/settle-within.js';

interface Claim {
  readonly id: string;
  readonly claimSeq: string;
}

/** Whether a claim stands, by a plain read on the caller's connection. */
export async function stands(
  session: PostgresSession,
  { id, claimSeq }: Claim,
  connection: StoreTransaction,
): Promise<boolean> {
  const [row] = await session.app(selectParentsStand, [[id], [claimSeq]], connection);
  return row?.['stand'] === 'true';
}

/** Records an outcome inside the caller's transaction, as its last statement. */
export async function settleWithin(
  session: PostgresSession,
  transaction: StoreTransaction,
  settlement: Settlement & { readonly outcome: 'succeeded' | 'snoozed' },
): Promise<boolean> {
  const { id, claimSeq, outcome, result, delayMs, drop, progress, ranMs } = settlement;
  const rows = await session.write(
    recordWithin,
    [
      session.offsetMs,
      id,
      claimSeq,
      outcome === 'succeeded',
      result ?? null,
      delayMs ?? null,
      drop ?? false,
      progress ?? null,
      ranMs ?? null,
    ],
    transaction,
  );
  return rows.length > 0;
}

/**
 * What became of an outcome whose commit is unknown. The transaction took the job's row before its COMMIT was sent, so whoever
 * gets that row knows that it has ended. The second statement has a later snapshot than that end.
 */
export async function fateOf(
  session: PostgresSession,
  { id, claimSeq, drop }: Claim & { readonly drop?: boolean },
): Promise<'standing' | 'recorded' | 'lost'> {
  const [standing] = await session.service(awaitClaim, [id, claimSeq]);
  if (standing) return 'standing';
  const [row] = await session.service(selectFate, [session.offsetMs, id, claimSeq, drop === true]);
  return row?.['recorded'] === 'true' ? 'recorded' : 'lost';
}
