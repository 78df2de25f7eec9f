import { type EndedAnswer } from '../job-store.js';
import { EVER, idTime } from './find-by-id.js';
import { type PostgresSession } from './postgres-session.js';
import { decodeEnded, selectEnded } from './statements/ended-jobs.js';

const DAY_MS = 86_400_000;
/** The store makes no partition that far ahead. */
const NEVER = 'infinity';

/**
 * How jobs ended, in one statement. Without `everywhere` only the days between the oldest id and tomorrow are looked into,
 * with a day of margin: neither old history nor the partitions of days to come cost anything.
 */
export async function endedJobs(
  session: PostgresSession,
  ids: readonly string[],
  everywhere: boolean,
): Promise<EndedAnswer> {
  const bounds = everywhere ? { since: EVER, until: NEVER } : boundsOf(ids, session.offsetMs);
  return decodeEnded(await session.read(selectEnded, [[...ids], bounds.since, bounds.until]));
}

function boundsOf(ids: readonly string[], offsetMs: number): { since: string; until: string } {
  const nowMs = Date.now();
  let oldestMs = nowMs;
  for (const id of ids) oldestMs = Math.min(oldestMs, idTime(id) ?? Number.NEGATIVE_INFINITY);
  return {
    since: Number.isFinite(oldestMs)
      ? new Date(oldestMs - DAY_MS + Math.min(0, offsetMs)).toISOString()
      : EVER,
    until: new Date(nowMs + DAY_MS + Math.max(0, offsetMs)).toISOString(),
  };
}
