import { type RatchetRuntime } from './engine/runtime.js';
import { RatchetMonitor } from './observability/ratchet-monitor.js';
import { type NodeInfo } from './observability/ratchet-snapshot.js';
import { type ResolvedOptions } from './ratchet.resolve.js';
import { type JobStore, type NodeView } from './store/job-store.js';

/** The monitor of an application: its own engine, and the list of nodes by this process's grace. */
export function ratchetMonitor(
  runtime: RatchetRuntime,
  store: JobStore,
  { engine }: ResolvedOptions,
): RatchetMonitor {
  const { graceMs } = engine.heartbeat;
  return new RatchetMonitor({
    snapshot: () => runtime.snapshot(),
    nodes: async () => (await store.nodes()).map((node) => nodeInfo(node, graceMs)),
  });
}

function nodeInfo({ state, ...node }: NodeView, graceMs: number): NodeInfo {
  if (node.heartbeatAgeMs > graceMs) return { ...node, status: 'stale' };
  return { ...node, status: state === 'draining' ? 'draining' : 'alive' };
}
