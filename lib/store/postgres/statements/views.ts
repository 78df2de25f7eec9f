import { type PriorityRank } from '../../../jobs/priority.js';
import { type ExecutionOutcome, type JobStatus } from '../../../jobs/job-status.js';
import { type ExecutionView, type JobView } from '../../job-store.js';
import { type Row } from '../../sql-client.js';
import { type MakeStatement } from '../postgres-session.js';

/**
 * Questions of the application, on its own connections: each row comes as JSON text, which no type parser of the
 * application changes. `$2` is a time bound that spares old partitions.
 */
export const selectJob: MakeStatement = (schema) => ({
  text: `
select to_json(v)::text as row from (
  select id, name, version, status, lane, priority, payload, result, error, progress, scheduled_at, created_at, begun_at,
         ended_at, node, executions, failures, crashes, claim_seq::text as claim_seq, max_retries, business_key, tags,
         metadata, parent_id, pause_requested
    from ${schema}.jobs where id = $1::uuid and (ended_at is null or ended_at >= $2::timestamptz)
) v`,
});

export const selectExecutions: MakeStatement = (schema) => ({
  text: `
select to_json(v)::text as row from (
  select job_id, claim_seq::text as claim_seq, number, node, outcome, error, began_at, ended_at, late_outcome, late_error,
         late_at
    from ${schema}.executions where job_id = $1::uuid and (ended_at is null or ended_at >= $2::timestamptz)
   order by executions.claim_seq, ended_at nulls last
) v`,
});

export const selectStatus: MakeStatement = (schema) => ({
  text: `select status from ${schema}.jobs where id = $1::uuid and (ended_at is null or ended_at >= $2::timestamptz)`,
});

type Json = Record<string, unknown>;

const optional = <T>(value: unknown): T | undefined => (value === null ? undefined : (value as T));
const date = (value: unknown): Date | undefined => (value === null ? undefined : new Date(value as string));

export function decodeJob(row: Row): JobView {
  const v = JSON.parse(row['row'] as string) as Json;
  return {
    id: v['id'] as string,
    name: v['name'] as string,
    version: v['version'] as number,
    status: v['status'] as JobStatus,
    lane: v['lane'] as string,
    priority: v['priority'] as PriorityRank,
    payload: v['payload'],
    result: optional(v['result']),
    error: optional(v['error']),
    progress: optional(v['progress']),
    scheduledAt: new Date(v['scheduled_at'] as string),
    createdAt: new Date(v['created_at'] as string),
    begunAt: date(v['begun_at']),
    endedAt: date(v['ended_at']),
    node: optional(v['node']),
    executions: v['executions'] as number,
    failures: v['failures'] as number,
    crashes: v['crashes'] as number,
    claimSeq: v['claim_seq'] as string,
    maxRetries: optional(v['max_retries']),
    businessKey: optional(v['business_key']),
    tags: (v['tags'] as string[] | null) ?? [],
    metadata: optional(v['metadata']),
    parentId: optional(v['parent_id']),
    pauseRequested: v['pause_requested'] as boolean,
  };
}

export function decodeExecution(row: Row): ExecutionView {
  const v = JSON.parse(row['row'] as string) as Json;
  return {
    jobId: v['job_id'] as string,
    claimSeq: v['claim_seq'] as string,
    number: v['number'] as number,
    node: optional(v['node']),
    outcome: v['outcome'] as ExecutionOutcome | 'running',
    error: optional(v['error']),
    beganAt: date(v['began_at']),
    endedAt: date(v['ended_at']),
    lateOutcome: optional(v['late_outcome']),
    lateError: optional(v['late_error']),
    lateAt: date(v['late_at']),
  };
}
