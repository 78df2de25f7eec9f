import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/** `$1` offset, job, claim, outcome, error, bound: the last word of a late worker, once, on its own closed execution. */
export const recordLate: MakeStatement = (schema) => ({
  text: `
update ${schema}.execution set late_outcome = $4, late_error = $5, late_at = ${storeClock('$1')}
 where job_id = $2::uuid and claim_seq = $3::bigint and outcome in ('crashed', 'released', 'canceled')
   and late_at is null and ended_at >= $6::timestamptz
returning 1 as taken`,
});
