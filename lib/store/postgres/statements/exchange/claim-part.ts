import { CLAIMED_JOB_COLUMN_NAMES, claimedJobColumns } from '../claimed-job.js';
import { type ExchangeShape } from './shape.js';

/** Index entries that a slice reads beyond what it wants: rows of other nodes' handlers, rows locked by others. */
export const READ_AHEAD = 300;

/** A claim ends with the job whose payload takes it beyond this: by stored bytes, a compressed one counted so many times. */
const MOST_PAYLOAD_BYTES = 8_000_000;
const COMPRESSED_COUNTS = 20;

/** Beyond so many boost intervals of age the order is oldest first. */
const MOST_BOOSTS = 20;

const BOOST = `(@boost::bigint * interval '1 millisecond')`;

/** CTEs that claim what fits; they read `bucket_row (status, paused)`, and make `chosen`, `fitting` and `claimed`. */
export function claimPart(schema: string, { marking }: ExchangeShape, now: string): string {
  // The first ones go into free slots, and have begun by this claim; the others wait in the buffer.
  const begins = 'j.id = any (array(select id from fitting limit @beginNow::int))';
  const begun = marking
    ? `begun_at = case when ${begins} then ${now} end, executions = j.executions + (${begins})::int`
    : `begun_at = ${now}, executions = j.executions + 1`;
  return `slices as (
  select t.p, k,
         case when k = head.oldest then coalesce(t.floor, '-infinity') - interval '1 microsecond'
              else ${now} - (k + 1) * ${BOOST} end as after,
         ${now} - k * ${BOOST} as until
    from bucket_row
   cross join unnest(@priorities::smallint[], @floors::timestamptz[]) as t (p, floor)
   cross join lateral (
     select case when @boost::bigint = 0 then 0
                 else least(floor(extract(epoch from ${now} - h.scheduled_at) * 1000 / @boost::bigint), ${MOST_BOOSTS})::int
            end as oldest
       from ${schema}.job h
      where h.status = 0 and h.crashes < 2 and h.lane = @lane::text and h.priority = t.p
        and h.scheduled_at >= coalesce(t.floor, '-infinity') and h.scheduled_at <= ${now}
      order by h.lane, h.priority, h.scheduled_at, h.id limit 1
   ) head
   cross join lateral generate_series(0, head.oldest) as k
   where bucket_row.status = 'active' and not bucket_row.paused
   order by t.p + k desc, k desc
),
suspect as materialized (
  select j.id, j.payload is null as apart from ${schema}.job j
   where @suspect::boolean and exists (select from bucket_row where status = 'active' and not paused)
     and j.status = 0 and j.crashes >= 2 and j.lane = @lane::text and j.scheduled_at <= ${now}
     and j.priority = any (@priorities::smallint[]) and j.version <= (@versions::int[])[array_position(@handlers::text[], j.name)]
   order by j.lane, j.scheduled_at, j.id limit 1
     for update skip locked
),
chosen as (
  select x.id, x.apart from (
    select id, apart from suspect
    union all
    select c.id, c.apart from slices o
     cross join lateral (
       select j.id, j.payload is null as apart
         from (
           select r.ctid as place, r.name, r.version from ${schema}.job r
            where r.status = 0 and r.crashes < 2 and r.lane = @lane::text and r.priority = o.p
              and r.scheduled_at > o.after and r.scheduled_at <= o.until
            order by r.lane, r.priority, r.scheduled_at, r.id
            limit @want::int + @ahead::int
         ) r
         join ${schema}.job j on j.ctid = r.place
        where r.version <= (@versions::int[])[array_position(@handlers::text[], r.name)]
          and j.status = 0 and j.crashes < 2 and j.lane = @lane::text and j.priority = o.p and j.scheduled_at <= o.until
        limit @want::int
          for update of j skip locked
     ) c
  ) x limit @want::int
),
fitting as materialized (
  select f.id from (
    select s.id, sum(s.bytes) over (rows unbounded preceding) - s.bytes as before
      from (
        select x.id, case when x.apart then coalesce((
                 select pg_column_size(p.payload) * case when pg_column_compression(p.payload) is null then 1
                                                         else ${COMPRESSED_COUNTS} end
                   from ${schema}.job_payload p where p.job_id = x.id), 0) else 0 end as bytes
          from chosen x
      ) s
  ) f where f.before < ${MOST_PAYLOAD_BYTES}
),
claimed as (
  update ${schema}.job j
     set status = 1, claim_seq = j.claim_seq + 1, bucket = @bucket::uuid, ${begun}
   where j.id = any (array(select id from fitting))
  returning ${claimedJobColumns(`${schema}.job_payload`, now)},
            j.priority + case when @boost::bigint = 0 then 0
              else least(floor(extract(epoch from ${now} - j.scheduled_at) * 1000 / @boost::bigint), ${MOST_BOOSTS}) end::int as level
)`;
}

/** When the next pending job of the bucket's streams is due: null when the claim came back full, 0 when its answer had no room. */
export function nextDue(schema: string, now: string): string {
  return `case when (select count(*) from fitting) < (select count(*) from chosen) then 0
            when (select count(*) from chosen) < @want::int then (
         select extract(epoch from min(d.scheduled_at) - ${now})::float8 * 1000 from (
           select e.scheduled_at from unnest(@priorities::smallint[]) as t (p)
            cross join lateral (
              select n.scheduled_at from ${schema}.job n
               where n.status = 0 and n.crashes < 2 and n.lane = @lane::text and n.priority = t.p and n.scheduled_at > ${now}
               order by n.lane, n.priority, n.scheduled_at, n.id limit 1
            ) e
           union all
           (select n.scheduled_at from ${schema}.job n
             where n.status = 0 and n.crashes >= 2 and n.lane = @lane::text and n.scheduled_at > ${now}
               and n.priority = any (@priorities::smallint[])
             order by n.lane, n.scheduled_at, n.id limit 1)
         ) d
       ) end`;
}

/** The columns of `claimed`, in the order of the answer. */
export const claimedColumns = CLAIMED_JOB_COLUMN_NAMES.join(', ');
