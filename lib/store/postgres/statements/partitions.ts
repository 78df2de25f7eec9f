import { type MakeStatement } from '../postgres-session.js';

/** `$1` days ahead, `$2` offset: a moved clock starts at its own day. */
export const ensurePartitions: MakeStatement = (schema) => ({
  text: `select ${schema}.ensure_partitions($1::int,
           case when $2::float8 <> 0 then ((now() + $2::float8 * interval '1 millisecond') at time zone 'UTC')::date end) as ahead`,
});

/**
 * `$1` schema's name: every day table of ours, attached or left over from a retirement that did not finish, with its size (of
 * table, TOAST and indexes: the files are asked, not the rows).
 */
export const selectPartitions: MakeStatement = () => ({
  text: `
select c.relname as name, coalesce(p.relname, regexp_replace(c.relname, '_[0-9]{8}$', '')) as parent,
       i.inhrelid is not null as attached, coalesce(i.inhdetachpending, false) as pending,
       pg_has_role(c.relowner, 'usage') as ours, right(c.relname, 8) as day,
       coalesce(pg_total_relation_size(c.oid), 0)::float8 as bytes, coalesce(pg_relation_size(c.oid), 0) = 0 as empty
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  left join pg_inherits i on i.inhrelid = c.oid
  left join pg_class p on p.oid = i.inhparent
 where n.nspname = $1::text and c.relkind = 'r' and c.relname ~ '^(job_history|execution)_[0-9]{8}$'
 order by c.relname`,
});
