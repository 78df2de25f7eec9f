import { type NewJob } from '../../job-store.js';
import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/**
 * CTEs that end in `refused (id)`: jobs of `given` in a priority that is switched off in their lane. As a rule no lane has such a one,
 * and the look is one page of a partial index, whatever the number of jobs. A job that a key will answer with another one is not
 * refused: that one was taken long ago.
 *
 * `given` has `id`, `lane`, `priority` and `now`, and the keys that are asked for.
 */
export function refusedJobs(schema: string, answered: readonly ('idempotency' | 'business')[]): string {
  const answers = {
    idempotency: `exists (select from ${schema}.idempotency_key k where k.key = g.key and k.expires_at > g.now)`,
    business: `exists (select from ${schema}.job j where j.business_key = g.business_key)`,
  };
  return `switched_off as materialized (select l.name, l.disabled from ${schema}.lane l where l.disabled <> '{}'),
refused as materialized (
  select g.id from given g join switched_off l on l.name = g.lane and g.priority = any (l.disabled)
   where true${answered.map((key) => ` and not ${answers[key]}`).join('')}
)`;
}

/** `$1` offset, `$2` jobs as {@link refusableRows} makes them: which of them are refused. */
export const selectRefused: MakeStatement = (schema) => ({
  text: `
with given as materialized (
  select i.*, ${storeClock('$1')} as now
    from json_to_recordset($2::json) as i (id uuid, lane text, priority smallint, key text, business_key text)
),
${refusedJobs(schema, ['idempotency', 'business'])}
select id::text as id from refused`,
});

/** What has to be known of jobs. Who replaces the holder of its key is not answered by it. */
export function refusableRows(jobs: readonly NewJob[]): string {
  return JSON.stringify(
    jobs.map(({ id, lane, priority, idempotencyKey, businessKey, onConflict }) => ({
      id,
      lane,
      priority,
      key: idempotencyKey?.key,
      business_key: onConflict === 'replace' ? undefined : businessKey,
    })),
  );
}
