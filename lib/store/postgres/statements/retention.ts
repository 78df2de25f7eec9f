import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/** Rows of one deleting statement: short enough to be in nobody's way. */
export const RETENTION_CHUNK = 1_000;

const day = (time: string): string => `to_char((${time}) at time zone 'UTC', 'YYYYMMDD')`;

/** `$1` offset, `$2` and `$3` ages in ms: today, the day before, and the oldest days that history and executions keep. */
export const selectDays: MakeStatement = () => ({
  text: `
select ${day('c.now')} as today, ${day(`c.now - interval '1 day'`)} as yesterday,
       ${day(`c.now - $2::float8 * interval '1 millisecond'`)} as history,
       ${day(`c.now - $3::float8 * interval '1 millisecond'`)} as execution
  from (select ${storeClock('$1')} as now) c`,
});

/** `$1` offset, `$2` age in ms. */
export const deleteDeadLetters: MakeStatement = (schema) => ({
  text: `
with old as (
  select id from ${schema}.dead_letter
   where ended_at < now() + $1::float8 * interval '1 millisecond' - $2::float8 * interval '1 millisecond'
   order by ended_at limit ${String(RETENTION_CHUNK)} for update skip locked
),
gone as (delete from ${schema}.dead_letter d using old where d.id = old.id returning d.id, d.payload is null as large),
payloads as (delete from ${schema}.job_payload p using gone g where g.large and p.job_id = g.id returning 1)
select (select count(*) from gone)::int as deleted, (select count(*) from payloads)::int as payloads`,
});

/** `$1` offset. */
export const deleteExpiredKeys: MakeStatement = (schema) => ({
  text: `
with old as (
  select key from ${schema}.idempotency_key where expires_at <= now() + $1::float8 * interval '1 millisecond'
   order by expires_at limit ${String(RETENTION_CHUNK)} for update skip locked
),
gone as (delete from ${schema}.idempotency_key k using old where k.key = old.key returning 1)
select count(*)::int as deleted from gone`,
});

/** `$1` offset, `$2` age in ms: notices to nodes that did not live to read them. Nobody else reads the table by age, and it is small. */
export const deleteOldNotices: MakeStatement = (schema) => ({
  text: `delete from ${schema}.notice where created_at < ${storeClock('$1')} - $2::float8 * interval '1 millisecond'`,
});

/** One page of a history partition (quoted, with schema), by id after `$1`: deletes the payloads that rest in their own table. */
export const deletePayloadPage = (schema: string, partition: string): { text: string } => ({
  text: `
with page as (select id, payload is null as large from ${partition} where id > $1::uuid order by id limit ${String(RETENTION_CHUNK)}),
gone as (delete from ${schema}.job_payload p using page where page.large and p.job_id = page.id returning 1)
select (select count(*) from page)::int as read, (select count(*) from gone)::int as deleted,
       (select id from page order by id desc limit 1) as last`,
});

/**
 * `$1` an id, `$2` offset, `$3` age in ms: one page of payloads after that id, of jobs older than that age; deletes those that no
 * job has. All statements that move a job, or make or delete a payload, do both at once, so one snapshot says it. Each id is looked
 * up: a join would be planned as scans of all jobs.
 */
export const deleteOrphanedPayloads: MakeStatement = (schema) => ({
  text: `
with page as materialized (
  select job_id as id from ${schema}.job_payload
   where job_id > $1::uuid
     and job_id < (select ${schema}.uuid_at(${storeClock('$2')} - $3::float8 * interval '1 millisecond'))
   order by job_id limit ${String(RETENTION_CHUNK)}
),
orphaned as materialized (
  select g.id from page g
   where coalesce((select true from ${schema}.job j where j.id = g.id),
                  (select true from ${schema}.dead_letter d where d.id = g.id),
                  (select true from ${schema}.job_history h where h.id = g.id limit 1)) is null
),
gone as (delete from ${schema}.job_payload p where p.job_id = any (array(select id from orphaned)) returning 1)
select (select count(*) from page)::int as read, (select count(*) from gone)::int as deleted,
       (select id from page order by id desc limit 1) as last`,
});
