import { type ScheduleWrite, type WriteOutcome } from '../../schedule-store.js';
import { faultKindOf } from '../../store-fault.js';
import { type PostgresSession } from '../postgres-session.js';
import { retriedRollback } from '../retried-rollback.js';
import {
  decodeWritten,
  writeParameters,
  writeSchedules as statement,
} from '../statements/schedules/write.js';

/** When a key changed hands during a write the statement is sent again: it then sees who has it. */
const KEY_TRIES = 3;
const UNIQUE_VIOLATION = '23505';

/**
 * Writes schedules in one statement. Only when two of them want the same business key, or somebody takes one meanwhile, can the
 * database refuse it for one of them: then they are written one by one.
 */
export async function writeSchedules(
  session: PostgresSession,
  writes: readonly ScheduleWrite[],
): Promise<readonly WriteOutcome[]> {
  const [first, ...others] = writes;
  if (!first) return [];
  try {
    return await send(session, writes);
  } catch (error) {
    if (!isTakenKey(error)) throw error;
    if (others.length === 0) return [await alone(session, first, error)];
  }
  const outcomes: WriteOutcome[] = [];
  for (const write of writes) outcomes.push(...(await writeSchedules(session, [write])));
  return outcomes;
}

async function alone(session: PostgresSession, write: ScheduleWrite, first: unknown): Promise<WriteOutcome> {
  let last = first;
  for (let attempt = 1; attempt < KEY_TRIES; attempt += 1) {
    try {
      return (await send(session, [write]))[0] as WriteOutcome;
    } catch (error) {
      if (!isTakenKey(error)) throw error;
      last = error;
    }
  }
  throw last;
}

async function send(session: PostgresSession, writes: readonly ScheduleWrite[]): Promise<WriteOutcome[]> {
  const parameters = writeParameters(writes, session.offsetMs);
  return decodeWritten(writes, await retriedRollback(() => session.app(statement, parameters)));
}

const isTakenKey = (error: unknown): boolean =>
  faultKindOf(error) === 'bad_row' && (error as { sourceCode?: unknown }).sourceCode === UNIQUE_VIOLATION;
