import { type RowHolder } from '../../errors/control-errors.js';
import { isUuid } from '../../jobs/job-id.js';
import { type JobStatus } from '../../jobs/job-status.js';
import { type PriorityRank } from '../../jobs/priority.js';
import { type Canceled, type Redriven } from '../job-store.js';
import { findById } from './find-by-id.js';
import { type PostgresSession } from './postgres-session.js';
import { cancel as cancelStatement } from './statements/cancel.js';
import { selectHolders } from './statements/keys.js';
import { redrive as redriveStatement } from './statements/redrive.js';
import { selectRowHolder } from './statements/row-holder.js';
import { selectStatus } from './statements/views.js';

/** Cancels a job. Waits for a settle in flight, so that exactly one of the two ends the job. */
export async function cancel(session: PostgresSession, id: string): Promise<Canceled> {
  if (!isUuid(id)) return { outcome: 'not_found' };
  const [row] = await session.app(cancelStatement, [session.offsetMs, id]);
  if (!row) {
    const status = await statusOf(session, id);
    return status ? { outcome: 'ended', status } : { outcome: 'not_found' };
  }
  const job = { lane: row['lane'] as string, name: row['name'] as string };
  if (row['running'] !== 'true') return { outcome: 'canceled', ...job };
  const node = (row['node'] as string | null) ?? undefined;
  return { outcome: 'canceled_running', ...job, claimSeq: row['claim_seq'] as string, node };
}

/** Brings a job back from the dead letter. */
export async function redrive(session: PostgresSession, id: string): Promise<Redriven> {
  if (!isUuid(id)) return { outcome: 'not_found' };
  const [row] = await session.app(redriveStatement, [session.offsetMs, id]);
  if (!row) {
    const status = await statusOf(session, id);
    return status ? { outcome: 'not_failed', status } : { outcome: 'not_found' };
  }
  if (row['revived'] === 'true') {
    return {
      outcome: 'redriven',
      lane: row['lane'] as string,
      priority: Number(row['priority']) as PriorityRank,
    };
  }
  const businessKey = row['business_key'] as string;
  const [holder] = await session.app(selectHolders, [[businessKey]]);
  return { outcome: 'held', holder: holder?.['id'] as string | undefined, businessKey };
}

/** Who keeps the row of a job locked. */
export async function holderOf(session: PostgresSession, id: string): Promise<RowHolder | undefined> {
  if (!isUuid(id)) return undefined;
  const [row] = await session.app(selectRowHolder, [id]);
  if (!row) return undefined;
  const state = row['state'] as string | null;
  const openMs = row['open_ms'] as string | null;
  return {
    pid: Number(row['pid']),
    application: row['application'] as string,
    ...(state === null ? {} : { state }),
    ...(openMs === null ? {} : { openForMs: Math.round(Number(openMs)) }),
  };
}

async function statusOf(session: PostgresSession, id: string): Promise<JobStatus | undefined> {
  const [row] = await findById(
    id,
    session.offsetMs,
    (bound) => session.read(selectStatus, [id, bound]),
    ({ length }) => length > 0,
  );
  return row?.['status'] as JobStatus | undefined;
}
