import { type NewJob } from '../../job-store.js';
import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';
import { isInside } from './joined.js';
import { refusedJobs } from './refused-jobs.js';

/** How the statement deals with keys. */
export type InsertKind =
  /** No key is looked at. */
  | 'plain'
  /** Only jobs whose idempotency key is new (or has expired) enter. */
  | 'idempotent'
  /** Jobs whose business key is held are left out. */
  | 'keep'
  /** A pending or paused holder is canceled as superseded; the insert reads from that delete. */
  | 'replace';

export interface InsertVariant {
  readonly kind: InsertKind;
  /** Insert only while the parents' claims stand. */
  readonly fenced: boolean;
  /** Some payloads go to their own table. */
  readonly large: boolean;
  /** Outside a caller's transaction: wait at most two seconds for a key that an open transaction holds. */
  readonly guarded: boolean;
  /** Jobs in a priority that is switched off were looked for already; otherwise nothing is inserted if there is one, and those come back. */
  readonly checked: boolean;
  /** Only inside the transaction whose mark is the last parameter; elsewhere one row without an id comes back. */
  readonly marked: boolean;
}

/** How long an enqueue of our own waits for somebody's open transaction. */
export const KEY_LOCK_TIMEOUT = '2s';

/** What answers a job with another one, which is no new one: it is not refused. */
const ANSWERED: Readonly<Record<InsertKind, readonly ('idempotency' | 'business')[]>> = {
  plain: [],
  idempotent: ['idempotency'],
  keep: ['business'],
  replace: [],
};

const made = new Map<string, MakeStatement>();

/** The insert for a variant; the same function for the same variant, so that its text is made once. */
export function insertJobs(variant: InsertVariant): MakeStatement {
  const flags = [
    variant.kind,
    ...(['fenced', 'large', 'guarded', 'checked', 'marked'] as const).filter((flag) => variant[flag]),
  ].join('-');
  const known = made.get(flags);
  if (known) return known;
  const make: MakeStatement = (schema) => ({
    name: `ratchet-insert-${flags}`,
    text: insertText(schema, variant),
  });
  made.set(flags, make);
  return make;
}

function insertText(schema: string, variant: InsertVariant): string {
  const { kind, fenced, large, guarded, checked, marked } = variant;
  const byKey = kind === 'keep' || kind === 'replace';
  // Rows enter in the order of their keys, so that two groups cannot wait for each other.
  const order = byKey ? 'order by i.business_key' : '';
  const inside = marked ? isInside(fenced ? '$5' : '$3') : undefined;
  const parts = [
    `clock as materialized (
  select ${storeClock('$1')} as now${guarded ? `, set_config('lock_timeout', '${KEY_LOCK_TIMEOUT}', true)` : ''}${inside ? `\n   where ${inside}` : ''}
)`,
    `${checked ? 'input' : 'given'} as materialized (
  select i.*, clock.now
    from clock cross join json_to_recordset($2::json) as i (id uuid, name text, version integer, lane text, priority smallint,
         delay_ms float8, run_at timestamptz, payload jsonb, large boolean, max_retries integer, backoff jsonb,
         timeout_ms bigint, business_key text, tags text[], metadata jsonb, parent_id uuid, key text, key_ms float8)
   ${fenced ? `where ${parentsStand(schema, '$3', '$4')}` : ''}
)`,
    ...(checked
      ? []
      : [
          refusedJobs(schema, ANSWERED[kind]),
          'input as not materialized (select g.* from given g where not exists (select from refused))',
        ]),
    ...(kind === 'idempotent' ? [claimKeys(schema)] : []),
    ...(kind === 'replace' ? [supersede(schema)] : []),
    `created as (
  insert into ${schema}.job (id, name, version, lane, priority, scheduled_at, created_at, payload, max_retries, backoff,
         timeout_ms, business_key, tags, metadata, parent_id)
  select i.id, i.name, i.version, i.lane, i.priority,
         coalesce(i.run_at, i.now + coalesce(i.delay_ms, 0) * interval '1 millisecond'), i.now,
         case when i.large is null then i.payload end, i.max_retries, i.backoff, i.timeout_ms, i.business_key, i.tags,
         i.metadata, i.parent_id
    from input i
    ${kind === 'idempotent' ? 'join claimed_keys k on k.job_id = i.id' : ''}
    ${kind === 'replace' ? 'left join holders h on h.successor = i.id' : ''}
   ${order}
  ${byKey ? 'on conflict (business_key) where business_key is not null do nothing' : ''}
  returning id
)`,
    ...(large ? [largePayloads(schema)] : []),
  ];
  return `
with ${parts.join(',\n')}
select c.id::text as id, ${kind === 'replace' ? 'h.id::text' : 'null'} as replaced, null as refused
  from created c ${kind === 'replace' ? 'left join holders h on h.successor = c.id' : ''}${
    checked ? '' : "\n union all select r.id::text, null, 'true' from refused r"
  }${inside ? '\n union all select null, null, null where not exists (select from clock)' : ''}`;
}

/** True while all claims of `ids` and `sequences` are running. A plain read: a lock would make the parent's settle wait. */
export function parentsStand(schema: string, ids: string, sequences: string): string {
  return `(select count(*) from unnest(${ids}::uuid[], ${sequences}::bigint[]) p (id, seq)
      join ${schema}.job j on j.id = p.id and j.claim_seq = p.seq and j.status = 1) = cardinality(${ids}::uuid[])`;
}

/** The idempotency rows, from `input`. A key that has expired is taken over; one that has not stays the first job's. */
export function claimKeys(schema: string): string {
  return `claimed_keys as (
  insert into ${schema}.idempotency_key as k (key, job_id, expires_at)
  select i.key, i.id, i.now + i.key_ms * interval '1 millisecond' from input i where i.key is not null order by i.key
  on conflict (key) do update set job_id = excluded.job_id, expires_at = excluded.expires_at
        where k.expires_at <= ${storeClock('$1')}
  returning k.job_id
)`;
}

function supersede(schema: string): string {
  return `holders as (
  delete from ${schema}.job j using input i
   where j.business_key = i.business_key and j.status in (0, 2)
  returning j.*, i.id as successor, i.now
),
superseded as (
  insert into ${schema}.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, payload, claim_seq,
         ended_at, executions, failures, crashes, max_retries, business_key, tags, metadata, parent_id, progress, error)
  select h.id, h.name, h.version, h.lane, h.priority, 'canceled', h.scheduled_at, h.created_at, h.payload, h.claim_seq,
         h.now, h.executions, h.failures, h.crashes, h.max_retries, h.business_key, h.tags, h.metadata, h.parent_id,
         h.progress, 'superseded by ' || h.successor
    from holders h
)`;
}

function largePayloads(schema: string): string {
  return `large_payloads as (
  insert into ${schema}.job_payload (job_id, payload)
  select i.id, i.payload from input i join created c on c.id = i.id where i.large
)`;
}

/**
 * Jobs as the JSON text that `json_to_recordset` reads. Written by hand: the payload is JSON text already, and one
 * parameter of JSON carries what arrays of arrays cannot (tags).
 */
export function insertRows(jobs: readonly NewJob[], inlinePayloadBytes: number): string {
  return `[${jobs.map((job) => insertRow(job, inlinePayloadBytes)).join(',')}]`;
}

/** Whether a payload goes to its own table, where it never moves. */
export function isLarge(job: NewJob, inlinePayloadBytes: number): boolean {
  return job.payload.length > inlinePayloadBytes || Buffer.byteLength(job.payload) > inlinePayloadBytes;
}

function insertRow(job: NewJob, inlinePayloadBytes: number): string {
  const text = JSON.stringify;
  let row =
    `{"id":"${job.id}","name":${text(job.name)},"version":${String(job.version)},"lane":${text(job.lane)},` +
    `"priority":${String(job.priority)},"payload":${job.payload}`;
  if (job.runAt) row += `,"run_at":"${job.runAt.toISOString()}"`;
  else if (job.delayMs > 0) row += `,"delay_ms":${String(job.delayMs)}`;
  if (isLarge(job, inlinePayloadBytes)) row += ',"large":true';
  if (job.maxRetries !== undefined) row += `,"max_retries":${String(job.maxRetries)}`;
  if (job.backoff) row += `,"backoff":${text(job.backoff)}`;
  if (job.timeoutMs !== undefined) row += `,"timeout_ms":${String(job.timeoutMs)}`;
  if (job.businessKey !== undefined) row += `,"business_key":${text(job.businessKey)}`;
  if (job.tags.length > 0) row += `,"tags":${text(job.tags)}`;
  if (job.metadata !== undefined) row += `,"metadata":${job.metadata}`;
  if (job.parent) row += `,"parent_id":"${job.parent.id}"`;
  if (job.idempotencyKey) {
    row += `,"key":${text(job.idempotencyKey.key)},"key_ms":${String(job.idempotencyKey.expiresInMs)}`;
  }
  return `${row}}`;
}

/** Fences of a group: each parent once. */
export function parentParameters(jobs: readonly NewJob[]): [ids: string[], sequences: string[]] {
  const parents = new Map(
    jobs.flatMap(({ parent }) => (parent ? [[`${parent.id}/${parent.claimSeq}`, parent]] : [])),
  );
  const each = [...parents.values()];
  return [each.map(({ id }) => id), each.map(({ claimSeq }) => claimSeq)];
}
