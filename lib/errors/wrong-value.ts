import { nearest } from './nearest.js';
import { showValue } from './show-value.js';

const NO_SUCH_KEY = 'there is no such key; ';

/** What errors say of a key that nobody asked for, as their `allowed`. */
export function unknownKey(key: string, keys: readonly string[]): string {
  const near = nearest(key, keys);
  return NO_SUCH_KEY + (near ? `did you mean ${near}?` : `allowed: ${keys.join(', ')}`);
}

/** The end of a message: what is wrong with a value. Of an unknown key the value is no matter. */
export function wrongValue(value: unknown, allowed: string): string {
  return allowed.startsWith(NO_SUCH_KEY) ? allowed : `${showValue(value)} is wrong; allowed: ${allowed}`;
}
