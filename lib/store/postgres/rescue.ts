import { type NodeRef, type RescueReport } from '../job-store.js';
import { type PostgresSession } from './postgres-session.js';
import {
  countClaims,
  deleteLostBucket,
  loseOwnBuckets,
  rescueChunk,
  selectMissingBuckets,
} from './statements/rescue.js';

/**
 * Takes back what older epochs of a node's own id hold. The buckets are taken away first, in a statement of its own: from
 * then on nothing can be claimed into them, so a plain count of 0 is final. Safe to repeat after any failure.
 */
export async function rescueOwn(
  session: PostgresSession,
  node: NodeRef,
  maxCrashRedeliveries: number,
): Promise<RescueReport> {
  const rows = await session.service(loseOwnBuckets, [session.offsetMs, node.id, node.epoch]);
  const buckets = rows.map(({ id }) => id as string);
  const report = await giveBack(session, buckets, [maxCrashRedeliveries, node.id]);
  for (const bucket of buckets) await session.service(deleteLostBucket, [bucket]);
  return report;
}

/** Takes back what runs in buckets that do not exist, into which nothing can be claimed either. */
export async function rescueOrphans(
  session: PostgresSession,
  maxCrashRedeliveries: number,
  signal?: AbortSignal,
): Promise<RescueReport> {
  const rows = await session.service(selectMissingBuckets);
  const buckets = rows.map(({ id }) => id as string);
  return giveBack(session, buckets, [maxCrashRedeliveries, null], signal);
}

async function giveBack(
  session: PostgresSession,
  buckets: readonly string[],
  how: readonly [maxCrashRedeliveries: number, nodeId: string | null],
  signal?: AbortSignal,
): Promise<RescueReport> {
  let recovered = 0;
  let failed = 0;
  for (const bucket of buckets) {
    let wait = false;
    for (;;) {
      signal?.throwIfAborted();
      const [chunk] = await session.service(rescueChunk(wait), [session.offsetMs, bucket, ...how]);
      recovered += chunk?.['recovered'] as number;
      failed += chunk?.['failed'] as number;
      const [count] = await session.service(countClaims, [bucket]);
      if (count?.['left_over'] === 0) break;
      // Rows are left that the chunk did not get: somebody has them locked, so wait for them.
      wait = chunk?.['recovered'] === 0 && chunk['failed'] === 0;
    }
  }
  return { buckets: buckets.length, recovered, failed };
}
