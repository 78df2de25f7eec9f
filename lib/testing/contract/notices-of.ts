import { type JobStore, type NodeRef, type Notice } from '../../store/job-store.js';

/** What a heartbeat of the node brings it. */
export async function noticesOf(store: JobStore, node: NodeRef): Promise<readonly Notice[]> {
  return (await store.beat({ node, graceMs: 3_600_000, running: 0, lagMs: 0 })).notices;
}
