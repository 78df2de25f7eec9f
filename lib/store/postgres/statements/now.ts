import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/** `$1` offset: the store's time in milliseconds since 1970. */
export const selectNow: MakeStatement = () => ({
  text: `select (extract(epoch from ${storeClock('$1')}) * 1000)::text as ms`,
});
