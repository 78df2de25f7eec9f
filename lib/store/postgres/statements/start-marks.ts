/**
 * When a running row `j` began. One that was claimed ahead began when a start mark of its bucket names its claim; without one it
 * has only waited in its node's buffer. Only rows without a time of their own are looked up, and in the newest marks first: under an
 * old snapshot a bucket has many dead ones. `known`: what else may say when it began, before the marks are asked.
 */
export const begunAt = (
  schema: string,
  j: string,
  known?: string,
): string => `coalesce(${j}.begun_at, ${known === undefined ? '' : `${known}, `}(
           select m.begun_at from ${schema}.start_mark m
            where m.bucket = ${j}.bucket
              and exists (select from unnest(m.ids, m.seqs) as s (id, seq) where s.id = ${j}.id and s.seq = ${j}.claim_seq)
            order by m.no desc limit 1))`;

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
