import { type MakeStatement } from '../postgres-session.js';

/**
 * `$1` id: the session whose transaction has locked, changed or deleted the row of a job and has not ended. A transaction holds a
 * lock on its own number as long as it lasts; a lock that several share has no such number and is not found.
 */
export const selectRowHolder: MakeStatement = (schema) => ({
  text: `
select a.pid::text as pid, coalesce(a.application_name, '') as application, a.state,
       (extract(epoch from clock_timestamp() - a.xact_start) * 1000)::text as open_ms
  from (select j.xmax as holder from ${schema}.job j where j.id = $1::uuid
         union all
        select d.xmax from ${schema}.dead_letter d where d.id = $1::uuid) r
  join pg_locks l on l.locktype = 'transactionid' and l.transactionid = r.holder and l.granted and l.mode = 'ExclusiveLock'
  join pg_stat_activity a on a.pid = l.pid
 limit 1`,
});
