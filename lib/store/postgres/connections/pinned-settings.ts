import { PLAN_SETTINGS } from '../plan-settings.js';

/**
 * What the engine's connections pin besides plans. The server gives up before the client does (`statement_timeout` is
 * below the client's guard), so that a slow statement is known to be rolled back.
 */
const PINNED: Readonly<Record<string, string>> = {
  ...PLAN_SETTINGS,
  max_parallel_workers_per_gather: '0',
  lock_timeout: '5s',
  statement_timeout: '25s',
  idle_in_transaction_session_timeout: '30s',
  default_transaction_isolation: 'read\\ committed',
  datestyle: 'ISO',
  timezone: 'UTC',
};

/** The client's own limit for one statement: a socket that answers nothing (no FIN either) is destroyed after it. */
export const STATEMENT_GUARD_MS = 30_000;

/** As the `options` start-up parameter: no round trip, and a reconnect cannot forget it. */
export function pinnedOptions(given: string | undefined): string {
  const pinned = Object.entries(PINNED).map(([name, value]) => `-c ${name}=${value}`);
  return [...(given ? [given] : []), ...pinned].join(' ');
}

/** The same as statements, for a pooler that refuses the start-up parameter. */
export function pinnedStatements(): string {
  return Object.entries(PINNED)
    .map(([name, value]) => `set ${name} = '${value.replaceAll('\\', '')}'`)
    .join('; ');
}
