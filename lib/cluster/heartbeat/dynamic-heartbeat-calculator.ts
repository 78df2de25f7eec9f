/** What the wait between two heartbeats is made of. */
export interface HeartbeatConditions {
  /** Nodes of the cluster, this one included. */
  readonly nodes: number;
  /** Jobs that run on this node, and those that it knows to be due. */
  readonly backlog: number;
}

export interface HeartbeatLimits {
  /** The wait of two or three nodes with little to do. */
  readonly baseMs: number;
  /** A node without a heartbeat for longer counts as dead. */
  readonly graceMs: number;
}

/** The shortest wait that is worth a statement, unless the grace is short. */
const SHORTEST_MS = 5_000;
/** Of the grace: two beats may be lost, and a third on its way, before anybody counts as dead. */
const PARTS_OF_GRACE = 3;

/**
 * How long a node waits between two heartbeats: the more nodes watch and the more work would be lost, the shorter; between
 * min(5 s, grace / 3) and grace / 3, so that one lost beat kills nobody, whatever the cluster's size and backlog.
 *
 * The factors are Ratchet's (the seed of this project), the bounds are our own.
 */
export class DynamicHeartbeatCalculator {
  constructor(private readonly limits: HeartbeatLimits) {}

  intervalMs({ nodes, backlog }: HeartbeatConditions): number {
    const { baseMs, graceMs } = this.limits;
    const longest = graceMs / PARTS_OF_GRACE;
    const shortest = Math.min(SHORTEST_MS, longest);
    const wished = baseMs * byNodes(nodes) * byBacklog(backlog);
    return Math.min(longest, Math.max(shortest, wished));
  }
}

function byNodes(nodes: number): number {
  if (nodes <= 1) return 1.5;
  if (nodes <= 3) return 1;
  return nodes <= 6 ? 0.8 : 0.6;
}

function byBacklog(backlog: number): number {
  if (backlog <= 0) return 1.2;
  if (backlog <= 10) return 1;
  if (backlog <= 50) return 0.9;
  return backlog <= 200 ? 0.7 : 0.5;
}
