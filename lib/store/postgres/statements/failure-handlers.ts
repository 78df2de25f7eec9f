import { FAILURE_SUFFIX } from '../../../jobs/define-job.js';
import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/**
 * `$1` offset, `$2` age in ms. Notes of each failure handler that a node has it, and deletes those that no node has had for
 * so long. One that registers meanwhile has touched the row, and the deletion passes it.
 */
export const forgetFailureHandlers: MakeStatement = (schema) => ({
  text: `
with served as materialized (
  select distinct left(h, ${-FAILURE_SUFFIX.length}) as job_name from ${schema}.node n cross join unnest(n.handlers) h
   where h like '%${FAILURE_SUFFIX}'
),
seen as (
  update ${schema}.failure_handler f set seen_at = ${storeClock('$1')} from served s
   where f.job_name = s.job_name and f.seen_at < ${storeClock('$1')} - $2::float8 * interval '1 millisecond' / 24
)
delete from ${schema}.failure_handler f
 where f.seen_at < ${storeClock('$1')} - $2::float8 * interval '1 millisecond'
   and not exists (select from served s where s.job_name = f.job_name)
returning f.job_name`,
});
