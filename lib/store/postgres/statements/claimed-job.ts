import { type ClaimedJob } from '../../job-store.js';
import { type ResolvedBackoff } from '../../../jobs/backoff.js';
import { type PriorityRank } from '../../../jobs/priority.js';

/** A row as {@link claimedJobColumns} selects it, on a connection of the engine (pg's own type parsers). */
export interface ClaimedJobRow {
  id: string;
  name: string;
  version: number;
  lane: string;
  priority: number;
  claim_seq: string;
  payload: unknown;
  place: string;
  scheduled_us: number;
  waited_ms: number;
  created_us: number;
  executions: number;
  failures: number;
  crashes: number;
  max_retries: number | null;
  backoff: ResolvedBackoff | null;
  timeout_ms: string | null;
  business_key: string | null;
  tags: string[] | null;
  metadata: unknown;
  parent_id: string | null;
  last_error: string | null;
  begun: boolean;
}

/**
 * The columns of a claimed job, of the live row `j`. Times travel as whole microseconds in a double (exact until the year
 * 2255), `place` as the database's own text: a JS Date would lose the microseconds that order a stream.
 */
export const claimedJobColumns = (payloadTable: string, now = 'now()'): string => `
  j.id, j.name, j.version, j.lane, j.priority, j.claim_seq,
  coalesce(j.payload, (select p.payload from ${payloadTable} p where p.job_id = j.id)) as payload,
  j.scheduled_at::text as place,
  (extract(epoch from j.scheduled_at) * 1000000)::float8 as scheduled_us,
  (extract(epoch from coalesce(j.begun_at, ${now}) - j.scheduled_at) * 1000)::float8 as waited_ms,
  (extract(epoch from j.created_at) * 1000000)::float8 as created_us,
  j.executions, j.failures, j.crashes, j.max_retries, j.backoff, j.timeout_ms, j.business_key, j.tags, j.metadata,
  j.parent_id, j.last_error, j.begun_at is not null as begun`;

/** The names of {@link claimedJobColumns}, in order, for statements that pass them through a CTE. */
export const CLAIMED_JOB_COLUMN_NAMES = [
  'id',
  'name',
  'version',
  'lane',
  'priority',
  'claim_seq',
  'payload',
  'place',
  'scheduled_us',
  'waited_ms',
  'created_us',
  'executions',
  'failures',
  'crashes',
  'max_retries',
  'backoff',
  'timeout_ms',
  'business_key',
  'tags',
  'metadata',
  'parent_id',
  'last_error',
  'begun',
] as const satisfies readonly (keyof ClaimedJobRow)[];

export function decodeClaimedJob(row: ClaimedJobRow): ClaimedJob {
  return {
    id: row.id,
    name: row.name,
    version: row.version,
    lane: row.lane,
    priority: row.priority as PriorityRank,
    claimSeq: row.claim_seq,
    payload: row.payload,
    scheduledAt: new Date(row.scheduled_us / 1000),
    place: row.place,
    createdAt: new Date(row.created_us / 1000),
    waitedMs: row.waited_ms,
    // One that was claimed ahead is counted when its outcome is recorded.
    executions: row.begun ? row.executions : row.executions + 1,
    begun: row.begun,
    failures: row.failures,
    crashes: row.crashes,
    maxRetries: row.max_retries ?? undefined,
    backoff: row.backoff ?? undefined,
    timeoutMs: row.timeout_ms === null ? undefined : Number(row.timeout_ms),
    businessKey: row.business_key ?? undefined,
    tags: row.tags ?? [],
    metadata: row.metadata ?? undefined,
    parentId: row.parent_id ?? undefined,
    lastError: row.last_error ?? undefined,
  };
}
