import { type PostgresSession } from './postgres-session.js';
import { agreeOnDisabled } from './statements/lanes.js';

/**
 * After a node has come or gone. What it did stands already, so that a failure here is no failure of it: the sweep of every minute puts
 * right what is missed.
 */
export async function agreeOnPriorities(session: PostgresSession): Promise<void> {
  await session.service(agreeOnDisabled).catch(() => undefined);
}
