/**
 * CTEs that make the start of jobs that were claimed ahead durable, before their handlers' first line: one row for the batch, so
 * that a crash is charged to what has begun and to nothing else. Only claims that still stand are marked (`marking`), and only
 * while the bucket is ours and its lane is not paused. `forgotten` are marks all of whose jobs have been answered for; a
 * bucket that was taken away keeps its marks for whoever took it.
 */
export function markPart(schema: string, now: string): string {
  return `marking as materialized (
  select b.id, b.seq from bucket_row cross join unnest(@beginIds::uuid[], @beginSeqs::bigint[]) as b (id, seq)
    join ${schema}.job j on j.id = any (array[b.id])
   where j.claim_seq = b.seq and j.status is not distinct from 1 and j.bucket is not distinct from @bucket::uuid
     and not j.pause_requested and not bucket_row.paused
),
marked as (
  insert into ${schema}.start_mark (bucket, no, ids, seqs, begun_at)
  select @bucket::uuid, @markNo::bigint, array_agg(m.id), array_agg(m.seq), ${now} from marking m having count(*) > 0
),
forgotten as (
  delete from ${schema}.start_mark m using bucket_row where m.bucket = @bucket::uuid and m.no = any (@forget::bigint[])
)`;
}
