import { type ExchangeAnswer, type ExchangeRequest, type Settlement } from '../../job-store.js';
import { JOB_PRIORITIES, type PriorityRank } from '../../../jobs/priority.js';
import {
  CLAIMED_JOB_COLUMN_NAMES,
  claimedJobColumns,
  decodeClaimedJob,
  type ClaimedJobRow,
} from './claimed-job.js';
import { failureJobs } from './failure-jobs.js';

/**
 * The hot path: settle what finished and claim what fits, in one autocommit statement (docs/architecture.md has the seven
 * rules and the experiments behind each clause). What a reader must know:
 *
 * - `bucket_row` is share-locked and the claim reads it, so that nobody can take the bucket away between the look and the
 *   claim. A CTE that nothing refers to would never run and lock nothing.
 * - `standing` is a plain read of the statement's snapshot, `locked` takes those rows with SKIP LOCKED. Standing but not
 *   locked: somebody holds the row, send it again. Not standing: the claim is gone, the outcome is discarded.
 * - `slices` are the ordered ranges (priority, k-th boost interval of age) whose order *is*
 *   `priority + floor(overdue / boost)`, then time. Each is pulled lazily, so a claim never comes back short while another
 *   stream has work, and future jobs lie behind every range.
 * - A slice reads at most `want + READ_AHEAD + readPast` index entries. They are read without a lock and filtered by handler; only
 *   what passes is locked, by its ctid. The conditions on `j` are the recheck after a lock that had to follow a newer version.
 * - `fitting` cuts off the jobs whose payloads would make the reply too large to arrive in time; the answer then says that
 *   more is due now. A stored size is read without the payload, and is a guess where the payload is compressed.
 * - `suspect`: a job that was running in two crashes or more is claimed apart from the others and one at a time, so that a
 *   poison pill cannot take the same innocents along until their budget is spent.
 * - Rows are looked up by `id = any (array[…])`, not by `=`: that is no merge clause, so the primary key cannot be read from end
 *   to end for its order. On a table that was analyzed empty, with an index full of dead entries, the planner did so (190 ms a turn).
 * - `given_back` pauses a job for which a pause was asked while it ran; `failing` and what follows it insert the durable jobs of
 *   `@OnJobFailure` (failure-jobs.ts).
 * - Bucket and status are compared in a form from which the planner can prove no index (`is not distinct from`): otherwise
 *   a plan made on a quiet night drives the settle by the bucket's index and goes quadratic.
 */
const KIND: Record<Settlement['outcome'], number> = {
  succeeded: 0,
  failed: 1,
  retried: 2,
  snoozed: 3,
  released: 4,
};
const PROGRESS = 5;

/** Index entries that a slice reads beyond what it wants: rows of other nodes' handlers, rows locked by others. */
export const READ_AHEAD = 300;

/** A claim ends with the job whose payload takes it beyond this: by stored bytes, a compressed one counted so many times. */
const MOST_PAYLOAD_BYTES = 8_000_000;
const COMPRESSED_COUNTS = 20;

/** Beyond so many boost intervals of age the order is oldest first. */
const MOST_BOOSTS = 20;

const PRIORITY_RANKS = JOB_PRIORITIES.map((_, rank) => rank as PriorityRank);

/**
 * The statement for a schema (quoted). `wait`: wait for locked rows instead of skipping them. `failing`: some of what it settles has
 * failed for good; to the others, which are nearly all, the parts that bury jobs would be dead weight.
 */
export function exchangeStatement(
  schema: string,
  wait: boolean,
  failing = true,
): { name: string; text: string } {
  const now = `(now() + $1::bigint * interval '1 millisecond')`;
  const boost = `($18::bigint * interval '1 millisecond')`;
  const moved = `j.id, j.name, j.version, j.lane, j.priority`;
  const counters = `j.executions`;
  const passed = CLAIMED_JOB_COLUMN_NAMES.join(', ');
  const spawned = CLAIMED_JOB_COLUMN_NAMES.map((column) => (column === 'lane' ? 'f.lane' : 'null')).join(
    ', ',
  );
  const nothing = CLAIMED_JOB_COLUMN_NAMES.map((column) => (column === 'id' ? 'x.id' : 'null')).join(', ');
  return {
    name: `ratchet-exchange${wait ? '-wait' : ''}${failing ? '-failing' : ''}`,
    text: `
with bucket_row as (
  select b.status from ${schema}.bucket b
   where b.id = $2::uuid and b.epoch = $3::int and b.status in ('active', 'completing')
     for share
),
sent as materialized (
  select s.* from unnest($5::uuid[], $6::bigint[], $7::smallint[], $8::text[], $9::text[], $10::bigint[], $11::boolean[], $12::text[])
    as s (id, seq, kind, result, error, delay_ms, dropped, progress)
),
standing as materialized (
  select s.id from sent s join ${schema}.job j on j.id = any (array[s.id])
   where j.claim_seq = s.seq and j.status is not distinct from 1 and j.bucket is not distinct from $2::uuid
),
locked as materialized (
  select s.*, j.begun_at from sent s join ${schema}.job j on j.id = any (array[s.id])
   where j.claim_seq = s.seq and j.status is not distinct from 1 and j.bucket is not distinct from $2::uuid
     for update of j${wait ? '' : ' skip locked'}
),
ended as (
  delete from ${schema}.job j using locked l
   where j.id = any (array[l.id]) and l.kind in (${KIND.succeeded}, ${KIND.failed})
  returning ${moved}, j.scheduled_at, j.created_at, j.payload, j.claim_seq, j.begun_at, ${counters}, j.failures, j.crashes,
            j.max_retries, j.backoff, j.timeout_ms, j.business_key, j.tags, j.metadata, j.parent_id,
            coalesce(l.progress::jsonb, j.progress) as progress, l.kind, l.result, l.error, l.dropped
),
to_history as (
  insert into ${schema}.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, payload, claim_seq,
         node, begun_at, ended_at, executions, failures, crashes, max_retries, business_key, tags, metadata, parent_id,
         progress, result)
  select e.id, e.name, e.version, e.lane, e.priority, 'succeeded', e.scheduled_at, e.created_at, e.payload, e.claim_seq,
         $4::text, e.begun_at, ${now}, e.executions, e.failures, e.crashes, e.max_retries, e.business_key, e.tags, e.metadata,
         e.parent_id, e.progress, e.result::jsonb
    from ended e where e.kind = ${KIND.succeeded} and not e.dropped
),
dropped_payload as (
  delete from ${schema}.job_payload p using ended e
   where e.dropped and e.kind = ${KIND.succeeded} and e.payload is null and p.job_id = e.id
),
${failing ? buriedJobs(schema, now) : ''}given_back as (
  update ${schema}.job j
     set status = case when j.pause_requested then 2 else 0 end, pause_requested = false, bucket = null, begun_at = null,
         scheduled_at = case when l.delay_ms is null then j.scheduled_at
                             else ${now} + l.delay_ms * interval '1 millisecond' end,
         failures = j.failures + case l.kind when ${KIND.retried} then 1 else 0 end,
         claim_seq = j.claim_seq + case l.kind when ${KIND.released} then 1 else 0 end,
         last_error = case l.kind when ${KIND.retried} then l.error else j.last_error end,
         progress = coalesce(l.progress::jsonb, j.progress)
    from locked l
   where j.id = any (array[l.id]) and l.kind in (${KIND.retried}, ${KIND.snoozed}, ${KIND.released})
  returning j.id, l.seq, ${counters}, l.kind, l.error, l.begun_at
),
closed as (
  insert into ${schema}.execution (job_id, claim_seq, number, node, outcome, error, began_at, ended_at)
  select g.id, g.seq, g.executions, $4::text,
         case g.kind when ${KIND.retried} then 'retried' when ${KIND.snoozed} then 'snoozed' else 'released' end,
         g.error, g.begun_at, ${now}
    from given_back g
),
progressed as (
  update ${schema}.job j set progress = l.progress::jsonb from locked l where j.id = any (array[l.id]) and l.kind = ${PROGRESS}
),
slices as (
  select t.p, k,
         case when k = head.oldest then coalesce(t.floor, '-infinity') - interval '1 microsecond'
              else ${now} - (k + 1) * ${boost} end as after,
         ${now} - k * ${boost} as until
    from bucket_row
   cross join unnest($16::smallint[], $17::timestamptz[]) as t (p, floor)
   cross join lateral (
     select case when $18::bigint = 0 then 0
                 else least(floor(extract(epoch from ${now} - h.scheduled_at) * 1000 / $18::bigint), ${MOST_BOOSTS})::int
            end as oldest
       from ${schema}.job h
      where h.status = 0 and h.crashes < 2 and h.lane = $19::text and h.priority = t.p
        and h.scheduled_at >= coalesce(t.floor, '-infinity') and h.scheduled_at <= ${now}
      order by h.lane, h.priority, h.scheduled_at, h.id limit 1
   ) head
   cross join lateral generate_series(0, head.oldest) as k
   where bucket_row.status = 'active'
   order by t.p + k desc, k desc
),
suspect as materialized (
  select j.id, j.payload is null as apart from ${schema}.job j
   where $21::boolean and exists (select from bucket_row where status = 'active')
     and j.status = 0 and j.crashes >= 2 and j.lane = $19::text and j.scheduled_at <= ${now}
     and j.priority = any ($16::smallint[]) and j.version <= ($15::int[])[array_position($14::text[], j.name)]
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
            where r.status = 0 and r.crashes < 2 and r.lane = $19::text and r.priority = o.p
              and r.scheduled_at > o.after and r.scheduled_at <= o.until
            order by r.lane, r.priority, r.scheduled_at, r.id
            limit $13::int + $20::int
         ) r
         join ${schema}.job j on j.ctid = r.place
        where r.version <= ($15::int[])[array_position($14::text[], r.name)]
          and j.status = 0 and j.crashes < 2 and j.lane = $19::text and j.priority = o.p and j.scheduled_at <= o.until
        limit $13::int
          for update of j skip locked
     ) c
  ) x limit $13::int
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
     set status = 1, claim_seq = j.claim_seq + 1, bucket = $2::uuid, begun_at = ${now}, executions = j.executions + 1
   where j.id = any (array(select id from fitting))
  returning ${claimedJobColumns(`${schema}.job_payload`)},
            j.priority + case when $18::bigint = 0 then 0
              else least(floor(extract(epoch from ${now} - j.scheduled_at) * 1000 / $18::bigint), ${MOST_BOOSTS}) end::int as level
)
select 'claimed' as tag, ${passed}, level::float8 as number from claimed
union all
select x.tag, ${nothing}, null from (
  select s.id, case when s.id in (select id from locked) then 'recorded'
                    when s.id in (select id from standing) then 'skipped' else 'lost' end as tag
    from sent s
) x where x.tag <> 'recorded'
${
  failing
    ? `union all
select 'spawned', ${spawned}, f.priority from failure_jobs f`
    : ''
}
union all
select case when exists (select from bucket_row) then 'owned' else 'deposed' end, ${nothing.replace('x.id', 'null')},
       case when (select count(*) from fitting) < (select count(*) from chosen) then 0
            when (select count(*) from chosen) < $13::int then (
         select extract(epoch from min(d.scheduled_at) - ${now})::float8 * 1000 from (
           select e.scheduled_at from unnest($16::smallint[]) as t (p)
            cross join lateral (
              select n.scheduled_at from ${schema}.job n
               where n.status = 0 and n.crashes < 2 and n.lane = $19::text and n.priority = t.p and n.scheduled_at > ${now}
               order by n.lane, n.priority, n.scheduled_at, n.id limit 1
            ) e
           union all
           (select n.scheduled_at from ${schema}.job n
             where n.status = 0 and n.crashes >= 2 and n.lane = $19::text and n.scheduled_at > ${now}
               and n.priority = any ($16::smallint[])
             order by n.lane, n.scheduled_at, n.id limit 1)
         ) d
       ) end`,
  };
}

/** From the live table to the dead letter, and into the queues of failure handlers. */
function buriedJobs(schema: string, now: string): string {
  return `to_dead_letter as (
  insert into ${schema}.dead_letter (id, name, version, lane, priority, scheduled_at, created_at, payload, claim_seq,
         node, begun_at, ended_at, executions, failures, crashes, max_retries, backoff, timeout_ms, business_key, tags,
         metadata, parent_id, progress, error)
  select e.id, e.name, e.version, e.lane, e.priority, e.scheduled_at, e.created_at, e.payload, e.claim_seq,
         $4::text, e.begun_at, ${now}, e.executions, e.failures + 1, e.crashes, e.max_retries, e.backoff, e.timeout_ms,
         e.business_key, e.tags, e.metadata, e.parent_id, e.progress, e.error
    from ended e where e.kind = ${KIND.failed}
),
buried as (
  select e.id, e.name, e.version, e.lane, e.priority, e.created_at, e.payload, $4::text as node, e.executions,
         e.failures + 1 as failures, e.crashes, e.business_key, e.tags, e.metadata, e.error
    from ended e where e.kind = ${KIND.failed}
),${failureJobs(schema, 'buried', now)},
`;
}

/** The statement's parameters. A progress report of a job that settles in the same exchange is left out: one row, one change. */
export function exchangeParameters(request: ExchangeRequest, offsetMs: number): unknown[] {
  const { bucket, settle } = request;
  const settled = new Set(settle.map((settlement) => settlement.id));
  const progress = request.progress.filter((report) => !settled.has(report.id));
  const none = progress.map(() => null);
  const ranks = bucket.priority === undefined ? PRIORITY_RANKS : [bucket.priority];
  return [
    offsetMs,
    bucket.id,
    bucket.epoch,
    bucket.node.id,
    [...settle.map((s) => s.id), ...progress.map((p) => p.id)],
    [...settle.map((s) => s.claimSeq), ...progress.map((p) => p.claimSeq)],
    [...settle.map((s) => KIND[s.outcome]), ...progress.map(() => PROGRESS)],
    [...settle.map((s) => s.result ?? null), ...none],
    [...settle.map((s) => s.error ?? null), ...none],
    [...settle.map((s) => s.delayMs ?? null), ...none],
    [...settle.map((s) => s.drop ?? false), ...progress.map(() => false)],
    [...settle.map((s) => s.progress ?? null), ...progress.map((p) => p.value)],
    request.want,
    request.handlers.map((handler) => handler.name),
    request.handlers.map((handler) => handler.version),
    ranks,
    ranks.map((rank) => request.floors[rank] ?? null),
    request.priorityBoostMs,
    bucket.lane,
    READ_AHEAD + (request.readPast ?? 0),
    request.suspect,
  ];
}

interface ExchangeRow extends ClaimedJobRow {
  tag: 'claimed' | 'skipped' | 'lost' | 'spawned' | 'owned' | 'deposed';
  number: number | null;
}

/** Makes the answer of the statement's rows. `UPDATE … RETURNING` loses the claim order: the level and the time restore it. */
export function decodeExchange(request: ExchangeRequest, rows: readonly object[]): ExchangeAnswer {
  const claimed: ExchangeRow[] = [];
  const skipped: string[] = [];
  const lost: string[] = [];
  const spawned: { lane: string; priority: PriorityRank }[] = [];
  let owned = false;
  let nextDueInMs: number | undefined;
  for (const row of rows as readonly ExchangeRow[]) {
    if (row.tag === 'claimed') claimed.push(row);
    else if (row.tag === 'skipped') skipped.push(row.id);
    else if (row.tag === 'lost') lost.push(row.id);
    else if (row.tag === 'spawned') spawned.push({ lane: row.lane, priority: row.number as PriorityRank });
    else {
      owned = row.tag === 'owned';
      nextDueInMs = row.number ?? undefined;
    }
  }
  claimed.sort(inClaimOrder);
  const unrecorded = new Set([...skipped, ...lost]);
  return {
    owned,
    recorded: request.settle.map((settlement) => settlement.id).filter((id) => !unrecorded.has(id)),
    skipped,
    lost,
    claimed: claimed.map(decodeClaimedJob),
    spawned,
    nextDueInMs,
  };
}

function inClaimOrder(a: ExchangeRow, b: ExchangeRow): number {
  return (b.number ?? 0) - (a.number ?? 0) || a.scheduled_us - b.scheduled_us || (a.id < b.id ? -1 : 1);
}
