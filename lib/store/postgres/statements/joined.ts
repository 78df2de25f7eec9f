import { type MakeStatement } from '../postgres-session.js';

/** Marks of the transaction and its open savepoints, separated by spaces. */
const SETTING = 'ratchet.joined';

/**
 * `$1` the mark. A local setting lasts as long as the transaction that it was made in, and goes with a savepoint that is
 * rolled back: exactly as long as the rows that are written there. Outside a transaction it is gone with the statement.
 */
export const markTransaction: MakeStatement = () => ({
  text: `select set_config('${SETTING}', concat_ws(' ', nullif(current_setting('${SETTING}', true), ''), $1::text), true),
       current_setting('transaction_isolation') as isolation`,
});

/** True while the statement runs where `mark` (a parameter) was made. */
export function isInside(mark: string): string {
  return `coalesce(${mark}::text = any (string_to_array(current_setting('${SETTING}', true), ' ')), false)`;
}
