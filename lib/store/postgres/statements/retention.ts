import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/** Rows of one deleting statement: short enough to be in nobody's way. */
export const RETENTION_CHUNK = 1_000;

/** `$1` offset, `$2` age in ms: partitions of earlier days are past it. */
export const selectOldestDay: MakeStatement = () => ({
  text: `select to_char((${storeClock('$1')} - $2::float8 * interval '1 millisecond') at time zone 'UTC', 'YYYYMMDD') as day`,
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
