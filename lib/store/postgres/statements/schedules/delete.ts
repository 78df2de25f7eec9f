import { type MakeStatement } from '../../postgres-session.js';

/** Occurrences that one statement deletes at most. */
export const DELETE_CHUNK = 20_000;

/** `$1` ids: nothing is made of a schedule whose row is held. */
export const lockSchedules: MakeStatement = (schema) => ({
  text: `select s.id from ${schema}.schedule s where s.id = any ($1::text[]) order by s.id for update of s`,
});

/** `$1` ids. */
export const deleteOccurrencesOf: MakeStatement = (schema) => ({
  text: `
with gone as (
  delete from ${schema}.occurrence
   where ctid = any (array(select ctid from ${schema}.occurrence where schedule_id = any ($1::text[]) limit ${String(DELETE_CHUNK)}))
  returning 1
)
select count(*)::text as deleted from gone`,
});

/** `$1` ids. */
export const deleteSchedules: MakeStatement = (schema) => ({
  text: `delete from ${schema}.schedule where id = any ($1::text[])`,
});
