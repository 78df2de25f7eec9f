import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/**
 * `$1` offset, job, claim, outcome, error, bound: the last word of a late worker, once, on its own closed execution. Of a job
 * that timed out for the last time the row in the dead letter is that execution.
 */
export const recordLate: MakeStatement = (schema) => ({
  text: `
with closed as (
  update ${schema}.execution set late_outcome = $4, late_error = $5, late_at = ${storeClock('$1')}
   where job_id = $2::uuid and claim_seq = $3::bigint and outcome in ('crashed', 'released', 'canceled', 'retried', 'failed')
     and late_at is null and ended_at >= $6::timestamptz
  returning 1
),
failed as (
  update ${schema}.dead_letter set late_outcome = $4, late_error = $5, late_at = ${storeClock('$1')}
   where id = $2::uuid and claim_seq = $3::bigint and late_at is null
  returning 1
)
select 1 as taken from closed union all select 1 from failed`,
});
