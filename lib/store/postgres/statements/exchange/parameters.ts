import { JOB_PRIORITIES, type PriorityRank } from '../../../../jobs/priority.js';
import { type ExchangeRequest } from '../../../job-store.js';
import { READ_AHEAD } from './claim-part.js';
import { type ExchangeStatement } from './exchange.js';
import { KIND, PROGRESS } from './settle-part.js';

const PRIORITY_RANKS = JOB_PRIORITIES.map((_, rank) => rank as PriorityRank);

/**
 * The values of a statement's parameters, in its order. A progress report of a job that settles in the same exchange is left out:
 * one row, one change.
 */
export function exchangeParameters(
  request: ExchangeRequest,
  offsetMs: number,
  { names }: Pick<ExchangeStatement, 'names'>,
): unknown[] {
  const { bucket, settle, ahead } = request;
  const settled = new Set(settle.map((settlement) => settlement.id));
  const progress = request.progress.filter((report) => !settled.has(report.id));
  const none = progress.map(() => null);
  const ranks = bucket.priority === undefined ? PRIORITY_RANKS : [bucket.priority];
  const values: Record<string, unknown> = {
    offset: offsetMs,
    bucket: bucket.id,
    epoch: bucket.epoch,
    node: bucket.node.id,
    lane: bucket.lane,
    ids: [...settle.map((s) => s.id), ...progress.map((p) => p.id)],
    seqs: [...settle.map((s) => s.claimSeq), ...progress.map((p) => p.claimSeq)],
    kinds: [...settle.map((s) => KIND[s.outcome]), ...progress.map(() => PROGRESS)],
    results: [...settle.map((s) => s.result ?? null), ...none],
    errors: [...settle.map((s) => s.error ?? null), ...none],
    delays: [...settle.map((s) => s.delayMs ?? null), ...none],
    drops: [...settle.map((s) => s.drop ?? false), ...progress.map(() => false)],
    progress: [...settle.map((s) => s.progress ?? null), ...progress.map((p) => p.value)],
    ran: [...settle.map((s) => s.ranMs ?? null), ...none],
    want: request.want,
    handlers: request.handlers.map((handler) => handler.name),
    versions: request.handlers.map((handler) => handler.version),
    priorities: ranks,
    floors: ranks.map((rank) => request.floors[rank] ?? null),
    boost: request.priorityBoostMs,
    ahead: READ_AHEAD + (request.readPast ?? 0),
    suspect: request.suspect,
    beginNow: ahead?.beginNow ?? request.want,
    beginIds: ahead?.begin.map(({ id }) => id) ?? [],
    beginSeqs: ahead?.begin.map(({ claimSeq }) => claimSeq) ?? [],
    markNo: ahead?.mark ?? 0,
    forget: ahead?.forget ?? [],
  };
  return names.map((name) => values[name]);
}
