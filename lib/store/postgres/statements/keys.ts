import { type MakeStatement, type MarkableStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';
import { claimKeys, KEY_LOCK_TIMEOUT, parentsStand } from './insert-jobs.js';
import { isInside } from './joined.js';

/** Bounds the waits of a transaction of our own. */
export const setKeyLockTimeout: MakeStatement = () => ({
  text: `select set_config('lock_timeout', '${KEY_LOCK_TIMEOUT}', true)`,
});

/** `$1` parents' ids, `$2` their claims. */
export const selectParentsStand: MakeStatement = (schema) => ({
  text: `select (${parentsStand(schema, '$1', '$2')})::text as stand`,
});

/**
 * `$1` offset, `$2` rows as `insertRows` makes them. Returns the ids of the jobs whose key was free, or one row without an id
 * where it may not write.
 */
export const claimIdempotencyKeys: MarkableStatement = {
  plain: (schema) => ({ text: claimKeysText(schema, 'true') }),
  marked: (schema) => ({ text: claimKeysText(schema, isInside('$3')) }),
};

function claimKeysText(schema: string, inside: string): string {
  return `
with input as materialized (
  select i.*, ${storeClock('$1')} as now from json_to_recordset($2::json) as i (id uuid, key text, key_ms float8)
   where ${inside}
),
${claimKeys(schema)}
select job_id::text as id from claimed_keys
 union all select null where not ${inside}`;
}

/** Whose are these idempotency keys? */
export const selectKeyOwners: MakeStatement = (schema) => ({
  text: `select key, job_id::text as id from ${schema}.idempotency_key where key = any ($1::text[])`,
});

/** The job that a key asked for existed already, under its business key: a repeat must find that one. */
export const pointKeys: MarkableStatement = {
  plain: (schema) => ({ text: pointKeysText(schema, 'true') }),
  marked: (schema) => ({ text: pointKeysText(schema, isInside('$3')) }),
};

function pointKeysText(schema: string, inside: string): string {
  return `update ${schema}.idempotency_key k set job_id = p.id
           from unnest($1::text[], $2::uuid[]) as p (key, id) where k.key = p.key and ${inside}`;
}

/** Who holds these business keys now? */
export const selectHolders: MakeStatement = (schema) => ({
  text: `select business_key, id::text as id, (status = 1)::text as running
           from ${schema}.job where business_key = any ($1::text[])`,
});

/** The same, locked in the order of the keys, so that a holder that may be replaced stays so. */
export const lockHolders: MakeStatement = (schema) => ({
  text: `${selectHolders(schema).text} order by business_key for update`,
});

/** Takes back what an enqueue inserted before it was refused: by id, as a savepoint would undo the caller's own work with it. */
export const undoInsert: MakeStatement = (schema) => ({
  text: `
with jobs as (delete from ${schema}.job where id = any ($1::uuid[])),
payloads as (delete from ${schema}.job_payload where job_id = any ($1::uuid[]))
delete from ${schema}.idempotency_key where key = any ($2::text[]) and job_id = any ($3::uuid[])`,
});
