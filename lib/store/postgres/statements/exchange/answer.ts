import { type PriorityRank } from '../../../../jobs/priority.js';
import { type ExchangeAnswer, type ExchangeRequest } from '../../../job-store.js';
import { type ClaimedJobRow, decodeClaimedJob } from '../claimed-job.js';

interface ExchangeRow extends ClaimedJobRow {
  tag: 'claimed' | 'skipped' | 'lost' | 'gone' | 'spawned' | 'owned' | 'paused' | 'completing' | 'deposed';
  number: number | null;
}

/** Makes the answer of the statement's rows. `UPDATE … RETURNING` loses the claim order: the level and the time restore it. */
export function decodeExchange(request: ExchangeRequest, rows: readonly object[]): ExchangeAnswer {
  const claimed: ExchangeRow[] = [];
  const ids: Record<'skipped' | 'lost' | 'gone', string[]> = { skipped: [], lost: [], gone: [] };
  const spawned: { lane: string; priority: PriorityRank }[] = [];
  let status: 'owned' | 'paused' | 'completing' | 'deposed' = 'deposed';
  let nextDueInMs: number | undefined;
  for (const row of rows as readonly ExchangeRow[]) {
    switch (row.tag) {
      case 'claimed':
        claimed.push(row);
        break;
      case 'skipped':
      case 'lost':
      case 'gone':
        ids[row.tag].push(row.id);
        break;
      case 'spawned':
        spawned.push({ lane: row.lane, priority: row.number as PriorityRank });
        break;
      default:
        status = row.tag;
        nextDueInMs = row.number ?? undefined;
    }
  }
  claimed.sort(inClaimOrder);
  const unrecorded = new Set([...ids.skipped, ...ids.lost]);
  return {
    owned: status !== 'deposed',
    completing: status === 'completing',
    paused: status === 'paused',
    recorded: request.settle.map((settlement) => settlement.id).filter((id) => !unrecorded.has(id)),
    ...ids,
    claimed: claimed.map(decodeClaimedJob),
    spawned,
    nextDueInMs,
  };
}

function inClaimOrder(a: ExchangeRow, b: ExchangeRow): number {
  return (b.number ?? 0) - (a.number ?? 0) || a.scheduled_us - b.scheduled_us || (a.id < b.id ? -1 : 1);
}
