import { type BucketView } from '../../bucket-store.js';
import { type Row } from '../../sql-client.js';
import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/**
 * `$1` offset: all buckets, each as JSON text. What runs in a bucket is read by the index of its running rows, one bucket after the
 * other. A row without `begun_at` was claimed ahead: it has begun if a start mark of the bucket names its claim, and waits if none does.
 * A mark may still name jobs that have ended, so it is the live row that counts.
 */
export const selectBuckets: MakeStatement = (schema) => ({
  text: `
with clock as materialized (select ${storeClock('$1')} as now)
select json_build_object('id', b.id, 'lane', b.lane, 'priority', b.priority, 'kind', b.kind, 'status', b.status,
         'node', json_build_object('id', b.node_id, 'epoch', b.node_epoch::text),
         'drainer', case when b.drainer_id is not null then
           json_build_object('id', b.drainer_id, 'epoch', b.drainer_epoch::text) end,
         'createdAt', b.created_at, 'statusAt', b.status_at,
         'ageMs', greatest(0, round(extract(epoch from c.now - b.created_at) * 1000)),
         'statusAgeMs', greatest(0, round(extract(epoch from c.now - b.status_at) * 1000)),
         'begun', h.held - h.ahead + m.begun, 'buffered', h.ahead - m.begun,
         'oldestBegunMs', case when h.held - h.ahead + m.begun > 0 then
           greatest(0, round(extract(epoch from c.now - least(h.oldest, m.oldest)) * 1000)) end,
         'lanePaused', l.paused_at is not null)::text as row
  from clock c
 cross join ${schema}.bucket b
  left join ${schema}.lane l on l.name = b.lane
 cross join lateral (
   select count(*) as held, count(*) filter (where j.begun_at is null) as ahead, min(j.begun_at) as oldest
     from ${schema}.job j where j.bucket = b.id and j.status = 1
 ) h
 cross join lateral (
   select count(*) as begun, min(k.begun_at) as oldest
     from ${schema}.start_mark k cross join lateral unnest(k.ids, k.seqs) as n (id, seq)
    cross join lateral (
      select from ${schema}.job j
       where j.id = n.id and j.claim_seq = n.seq and j.status = 1 and j.begun_at is null limit 1
    ) j
    where k.bucket = b.id
 ) m
 order by b.lane, b.created_at, b.id`,
});

export function decodeBucket(row: Row): BucketView {
  const read = JSON.parse(row['row'] as string) as Record<string, unknown> & {
    createdAt: string;
    statusAt: string;
  };
  const present = Object.fromEntries(Object.entries(read).filter(([, value]) => value !== null));
  return {
    ...(present as unknown as BucketView),
    createdAt: new Date(read.createdAt),
    statusAt: new Date(read.statusAt),
  };
}
