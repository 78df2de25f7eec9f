/**
 * When a running row `j` began. One that was claimed ahead began when a start mark of its bucket names its claim; without one it
 * has only waited in its node's buffer. A bucket has few marks, and only rows without a time of their own are looked up.
 */
export const begunAt = (schema: string, j: string): string => `coalesce(${j}.begun_at, (
           select m.begun_at from ${schema}.start_mark m
            where m.bucket = ${j}.bucket
              and exists (select from unnest(m.ids, m.seqs) as s (id, seq) where s.id = ${j}.id and s.seq = ${j}.claim_seq) limit 1))`;

/** Deletes marks of buckets that do not exist, and of which nothing runs. */
export const orphanedMarks = (schema: string): string => `
  delete from ${schema}.start_mark m
   where not exists (select from ${schema}.bucket b where b.id = m.bucket)
     and not exists (select from ${schema}.job j where j.bucket = m.bucket and j.status = 1)
`;

/** CTE `marks (id, seq, begun_at)`: all that the marks of a bucket name. */
export const marksOf = (schema: string, bucket: string): string => `marks as materialized (
  select s.id, s.seq, m.begun_at from ${schema}.start_mark m cross join lateral unnest(m.ids, m.seqs) as s (id, seq)
   where m.bucket = ${bucket}::uuid
)`;
