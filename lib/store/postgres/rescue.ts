import { type NodeRef, type RescueReport } from '../job-store.js';
import { type PostgresSession } from './postgres-session.js';
import { countClaims, deleteLostBucket, loseOwnBuckets, rescueChunk } from './statements/rescue.js';

/**
 * Takes back what older epochs of a node's own id hold. The buckets are taken away first, in a statement of its own: from
 * then on nothing can be claimed into them, so a plain count of 0 is final. Safe to repeat after any failure.
 */
export async function rescueOwn(
  session: PostgresSession,
  node: NodeRef,
  maxCrashRedeliveries: number,
): Promise<RescueReport> {
  const buckets = await session.service(loseOwnBuckets, [session.offsetMs, node.id, node.epoch]);
  let recovered = 0;
  let failed = 0;
  for (const bucket of buckets) {
    let wait = false;
    for (;;) {
      const parameters = [session.offsetMs, bucket['id'], maxCrashRedeliveries, node.id];
      const [chunk] = await session.service(rescueChunk(wait), parameters);
      recovered += chunk?.['recovered'] as number;
      failed += chunk?.['failed'] as number;
      const [count] = await session.service(countClaims, [bucket['id']]);
      if (count?.['left_over'] === 0) break;
      // Rows are left that the chunk did not get: somebody has them locked, so wait for them.
      wait = chunk?.['recovered'] === 0 && chunk['failed'] === 0;
    }
    await session.service(deleteLostBucket, [bucket['id']]);
  }
  return { buckets: buckets.length, recovered, failed };
}
