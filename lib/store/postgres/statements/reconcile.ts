import { type ReconcileAnswer, type ReconcileRequest } from '../../job-store.js';
import { type Row } from '../../sql-client.js';
import { type MakeStatement } from '../postgres-session.js';
import { claimedJobColumns, type ClaimedJobRow, decodeClaimedJob } from './claimed-job.js';

/**
 * The buckets that are still ours, locked for a moment: an exchange whose reply was lost may still run on the server, and
 * holds the row while it does. A statement of its own, so that the next one's snapshot is later than that commit.
 */
export const awaitBuckets: MakeStatement = (schema) => ({
  text: `
select b.id from ${schema}.bucket b join unnest($1::uuid[], $2::int[]) as o (id, epoch) on o.id = b.id and o.epoch = b.epoch
 where b.status <> 'lost' order by b.id for update of b`,
});

/** Claims in our buckets that the node does not know. */
export const selectStrays: MakeStatement = (schema) => ({
  text: `
select j.bucket, ${claimedJobColumns(`${schema}.job_payload`)}
  from ${schema}.job j
 where j.status = 1 and j.bucket = any ($1::uuid[])
   and not exists (select from unnest($2::uuid[], $3::bigint[]) as k (id, seq) where k.id = j.id and k.seq = j.claim_seq)`,
});

/**
 * What became of outcomes whose settle may or may not have been committed. `$1` offset, `$2` ids, `$3` claims, `$4` those
 * whose success leaves no trace: absent counts as recorded while the bucket is ours.
 */
export const selectUnsettled: MakeStatement = (schema) => {
  const recent = `ended_at >= now() + $1::float8 * interval '1 millisecond' - interval '1 day'`;
  return {
    text: `
select u.id, case
         when exists (select from ${schema}.job j where j.id = u.id and j.claim_seq = u.seq and j.status = 1) then 'live'
         when exists (select from ${schema}.execution e where e.job_id = u.id and e.claim_seq = u.seq and ${recent}
                        and e.outcome in ('retried', 'snoozed', 'released'))
           or exists (select from ${schema}.job_history h where h.id = u.id and h.claim_seq = u.seq and ${recent}
                        and h.outcome <> 'canceled')
           or exists (select from ${schema}.dead_letter d where d.id = u.id and d.claim_seq = u.seq and d.outcome <> 'crashed')
           then 'recorded'
         when u.dropped and not exists (select from ${schema}.job j where j.id = u.id)
           and not exists (select from ${schema}.job_history h where h.id = u.id and ${recent})
           and not exists (select from ${schema}.dead_letter d where d.id = u.id) then 'recorded'
         else 'lost' end as fate
  from unnest($2::uuid[], $3::bigint[], $4::boolean[]) as u (id, seq, dropped)`,
  };
};

export function unsettledParameters(
  request: ReconcileRequest,
  offsetMs: number,
  allOurs: boolean,
): unknown[] {
  const { unsettled } = request;
  return [
    offsetMs,
    unsettled.map(({ id }) => id),
    unsettled.map(({ claimSeq }) => claimSeq),
    unsettled.map(({ drop }) => allOurs && drop === true),
  ];
}

export function decodeStrays(rows: readonly Row[]): ReconcileAnswer['strays'] {
  return rows.map((row) => ({
    bucketId: row['bucket'] as string,
    job: decodeClaimedJob(row as unknown as ClaimedJobRow),
  }));
}
