import { type OccurrenceOutcome, type TriggerRequest } from '../../schedule-store.js';
import { StoreError } from '../../store-fault.js';
import { type PostgresSession } from '../postgres-session.js';
import { decodeTriggered, trigger } from '../statements/schedules/trigger.js';
import { ownTransaction } from './own-transaction.js';

/** One that met a firing, or another trigger, each time: something else is wrong. */
const TRIES = 10;

/** An occurrence now. Sent again when the schedule was fired or changed while the statement waited for it. */
export async function triggerOccurrence(
  session: PostgresSession,
  { id, jobId, ifBusy, payload }: TriggerRequest,
): Promise<OccurrenceOutcome | undefined> {
  const parameters = [session.offsetMs, id, jobId, ifBusy ?? null, payload ?? null];
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const rows = await ownTransaction(session, (inside) => session.app(trigger, parameters, inside));
    const answer = decodeTriggered(rows);
    if (answer !== 'again') return answer;
  }
  throw new StoreError(
    'rolled_back',
    `STORE_FAULT: schedule ${id} is fired or changed all the time`,
    undefined,
  );
}
