import { CLAIMED_JOB_COLUMN_NAMES } from '../claimed-job.js';
import { type Statement } from '../../../sql-client.js';
import { claimedColumns, claimPart, nextDue } from './claim-part.js';
import { markPart } from './mark-part.js';
import { numbered } from './named.js';
import { settlePart } from './settle-part.js';
import { type ExchangeShape, shapeName } from './shape.js';

/** A statement that knows which parameter stands at which place. */
export interface ExchangeStatement extends Statement {
  readonly names: readonly string[];
}

/**
 * The hot path: settle what finished, begin what was claimed ahead, and claim what fits, in one autocommit statement
 * (docs/architecture.md has the seven rules and the experiments behind each clause). What a reader must know:
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
export function exchangeStatement(schema: string, shape: ExchangeShape): ExchangeStatement {
  const now = `(now() + @offset::bigint * interval '1 millisecond')`;
  const { claiming, marking } = shape;
  const paused =
    claiming || marking
      ? `, exists (select from ${schema}.lane l where l.name = @lane::text and l.paused_at is not null) as paused`
      : '';
  const saysPaused = paused ? " when paused then 'paused'" : '';
  const parts = [
    `bucket_row as (
  select b.status${paused} from ${schema}.bucket b
   where b.id = @bucket::uuid and b.epoch = @epoch::int and b.status in ('active', 'completing')
     for share of b
)`,
    settlePart(schema, shape, now),
    ...(marking ? [markPart(schema, now)] : []),
    ...(claiming ? [claimPart(schema, shape, now)] : []),
  ];
  const { text, names } = numbered(`
with ${parts.join(',\n')}
${answers(schema, now, shape, saysPaused).join('\nunion all\n')}`);
  return { name: shapeName(shape), text, names };
}

function answers(
  schema: string,
  now: string,
  { claiming, marking, failing }: ExchangeShape,
  paused: string,
): readonly string[] {
  // The first of them gives the columns their types.
  const claimed = claiming
    ? `select 'claimed' as tag, ${claimedColumns}, level::float8 as number from claimed`
    : `select 'claimed' as tag, ${nulls({})}, null::float8 as number where false`;
  return [
    claimed,
    `select x.tag, ${nulls({ id: 'x.id' })}, null from (
  select s.id, case when s.id in (select id from locked) then 'recorded'
                    when s.id in (select id from standing) then 'skipped' else 'lost' end as tag
    from sent s
) x where x.tag <> 'recorded'`,
    ...(marking
      ? [
          `select 'gone', ${nulls({ id: 'b.id' })}, null
  from unnest(@beginIds::uuid[]) as b (id) where b.id not in (select id from marking)`,
        ]
      : []),
    ...(failing ? [`select 'spawned', ${nulls({ lane: 'f.lane' })}, f.priority from failure_jobs f`] : []),
    `select coalesce((select case when status = 'completing' then 'completing'${paused} else 'owned' end from bucket_row), 'deposed'), ${nulls({})},
       ${claiming ? nextDue(schema, now) : 'null'}`,
  ];
}

/** The columns of a claimed job, without a job. */
function nulls(given: Readonly<Record<string, string>>): string {
  return CLAIMED_JOB_COLUMN_NAMES.map(
    (column) => `${given[column] ?? `null${COLUMN_TYPES[column] ?? ''}`} as ${column}`,
  ).join(', ');
}

/** In a statement whose first row is no claim, what has to be a type that the others agree with. */
const COLUMN_TYPES: Readonly<Record<string, string>> = { id: '::uuid', lane: '::text' };
