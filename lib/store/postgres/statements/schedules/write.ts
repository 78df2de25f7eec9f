import { type ScheduleWrite, type WriteOutcome } from '../../../schedule-store.js';
import { type Row } from '../../../sql-client.js';
import { type MakeStatement } from '../../postgres-session.js';
import { quoteLiteral } from '../../schema-name.js';
import { storeClock } from '../clock.js';

/** A place in the order of all changes of schedules. */
export const nextRevision = (schema: string): string =>
  `nextval(${quoteLiteral(`${schema}.schedule_revision`)})`;

/** What a write sets, of a row of `input`, and the column that it sets. */
const COLUMNS = [
  'name',
  'expression',
  'time_zone',
  'origin',
  'owner',
  'job_name',
  'job_version',
  'lane',
  'priority',
  'payload',
  'max_retries',
  'backoff',
  'timeout_ms',
  'tags',
  'misfire',
  'catch_up',
  'overlap',
  'jitter_ms',
  'scope',
  'business_key',
  'enabled',
  'anchor_at',
] as const;

/**
 * `$1` offset, `$2` schedules as JSON. Rows are locked, and new ones enter, in the order of their ids, so that nodes that start
 * together cannot wait for each other. A written schedule is whole again: neither broken nor orphaned nor removed.
 *
 * Returns `written` rows, and `held` ones: who has the business key that a schedule asks for.
 */
export const writeSchedules: MakeStatement = (schema) => ({
  text: `
with clock as materialized (select date_trunc('milliseconds', ${storeClock('$1')}) as now),
input as materialized (
  select i.*, c.now
    from clock c cross join json_to_recordset($2::json) as i (id text, revision bigint, name text, expression text, time_zone text,
         origin text, owner text, job_name text, job_version integer, lane text, priority smallint, payload jsonb,
         max_retries integer, backoff jsonb, timeout_ms bigint, tags text[], misfire text, catch_up integer, overlap text,
         jitter_ms bigint, scope text, business_key text, enabled boolean, anchor_at timestamptz, next_at timestamptz,
         keeps_next boolean)
),
locked as materialized (
  select i.* from input i join ${schema}.schedule s on s.id = any (array[i.id])
   where s.revision = i.revision
     and not exists (select from ${schema}.schedule o where o.business_key = i.business_key and o.id <> i.id)
   order by s.id for update of s
),
updated as (
  update ${schema}.schedule s
     set ${COLUMNS.map((column) => `${column} = l.${column}`).join(', ')},
         next_at = case when l.keeps_next then s.next_at else l.next_at end, revision = ${nextRevision(schema)},
         updated_at = l.now, fault = null, orphaned_at = null, removed_at = null
    from locked l where s.id = any (array[l.id])
  returning s.id
),
inserted as (
  insert into ${schema}.schedule (id, revision, next_at, created_at, updated_at, ${COLUMNS.join(', ')})
  select i.id, ${nextRevision(schema)}, i.next_at, i.now, i.now, ${COLUMNS.map((column) => `i.${column}`).join(', ')}
    from input i where i.revision is null order by i.id
  on conflict do nothing
  returning id
)
select 'written' as tag, id, null as holder from updated
union all select 'written', id, null from inserted
union all select 'held', i.id, o.id from input i join ${schema}.schedule o on o.business_key = any (array[i.business_key]) and o.id <> i.id`,
});

export function writeParameters(writes: readonly ScheduleWrite[], offsetMs: number): unknown[] {
  return [offsetMs, `[${writes.map(writeRow).join(',')}]`];
}

/** The payload is JSON text already. */
function writeRow({ spec, revision, anchor, nextAt }: ScheduleWrite): string {
  const { template, misfire } = spec;
  const row = {
    id: spec.id,
    revision,
    name: spec.name,
    expression: spec.expression,
    time_zone: spec.timeZone,
    origin: spec.origin,
    owner: spec.owner,
    job_name: template.name,
    job_version: template.version,
    lane: template.lane,
    priority: template.priority,
    max_retries: template.maxRetries,
    backoff: template.backoff,
    timeout_ms: template.timeoutMs,
    tags: template.tags,
    misfire: typeof misfire === 'object' ? 'catchUp' : misfire,
    catch_up: typeof misfire === 'object' ? misfire.catchUp : undefined,
    overlap: spec.overlap,
    jitter_ms: spec.jitterMs,
    scope: spec.scope,
    business_key: spec.businessKey,
    enabled: spec.enabled,
    anchor_at: anchor,
    next_at: nextAt === 'keep' ? undefined : nextAt,
    keeps_next: nextAt === 'keep',
  };
  return `${JSON.stringify(row).slice(0, -1)},"payload":${template.payload}}`;
}

/** In the order of `writes`. */
export function decodeWritten(writes: readonly ScheduleWrite[], rows: readonly Row[]): WriteOutcome[] {
  const ofTag = (tag: string): Row[] => rows.filter((row) => row['tag'] === tag);
  const written = new Set(ofTag('written').map((row) => row['id']));
  const holders = new Map(ofTag('held').map((row) => [row['id'], row['holder'] as string]));
  return writes.map(({ spec }) => {
    if (written.has(spec.id)) return 'written';
    const heldBy = holders.get(spec.id);
    return heldBy === undefined ? 'conflict' : { heldBy };
  });
}
