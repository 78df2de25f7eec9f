/** What a node is doing in one lane, in all its buckets there. */
export interface LaneSnapshot {
  readonly lane: string;
  /** Status of a bucket that it claims into, or of one that finishes; undefined while there is none. */
  readonly bucket?: 'active' | 'completing' | 'ready_to_drain' | 'lost' | 'draining' | 'ready_to_delete';
  /** How that bucket looks for work that nobody tells it of; undefined while there is no bucket. */
  readonly poll?: {
    readonly state: 'burst' | 'idle' | 'deep_idle' | 'saturated' | 'held';
    /** The longest wait for the next look, in milliseconds; undefined while it does not look by itself. */
    readonly waitMs?: number | undefined;
  };
  /** How many executions may run at once in the lane, of the {@link RatchetSnapshot.slots} of the node. */
  readonly slots: number;
  /** Executions whose handlers have not returned. */
  readonly running: number;
  /** Outcomes that are not recorded yet. */
  readonly waiting: number;
}

/** What a node is doing in one of its buckets. */
export interface BucketSnapshot {
  readonly id: string;
  readonly lane: string;
  /** It claims jobs of this priority alone; undefined: of all. */
  readonly priority?: 'lowest' | 'low' | 'normal' | 'high' | 'critical';
  /** `fallback`: made for due jobs of the lane that no other bucket of the cluster serves. */
  readonly kind: 'standard' | 'fallback';
  /** `lost`: it was taken away, and its executions have not ended. */
  readonly status: NonNullable<LaneSnapshot['bucket']>;
  /** Executions whose handlers have not returned. */
  readonly running: number;
  /** Jobs that it has claimed ahead and not begun. */
  readonly buffered: number;
  /** Outcomes that are not recorded yet. */
  readonly waiting: number;
  readonly poll: NonNullable<LaneSnapshot['poll']>;
}

/** How the node's claim to be alive stands. */
export interface HeartbeatSnapshot {
  /** A heartbeat was acknowledged within the grace. False: the node claims nothing, and others may take its jobs back. */
  readonly held: boolean;
  /** How long ago the last acknowledged heartbeat was sent, in milliseconds; undefined before the first. */
  readonly acknowledgedAgeMs?: number;
  /** The module option `heartbeat.grace`, in milliseconds. */
  readonly graceMs: number;
  /** Nodes of the cluster as of the last heartbeat, this one included. */
  readonly nodes: number;
}

/** How late the engine's own timer is. */
export interface EventLoopSnapshot {
  /** How long it is overdue now, in milliseconds. */
  readonly overdueMs: number;
  /** The longest that the event loop stood still within the last minute, in milliseconds. */
  readonly worstMs: number;
  /** The module option `heartbeat.stallLimit`, in milliseconds. */
  readonly stallLimitMs: number;
}

/** A statement that the database did not carry out. */
export interface FaultSnapshot {
  /** What the node was doing. */
  readonly where: string;
  /** A {@link StoreFaultKind}. */
  readonly kind: string;
  readonly ageMs: number;
}

/** What a process knows of its engine, without asking anybody: see {@link RatchetMonitor.snapshot}. Plain values. */
export interface RatchetSnapshot {
  readonly state: 'idle' | 'starting' | 'running' | 'draining' | 'drained' | 'closed';
  /** Why the node will never begin, if it will not. */
  readonly startFault?: string;
  /** The module option `worker`. */
  readonly worker: boolean | 'drain';
  readonly node: {
    readonly id: string;
    /** Undefined until the node is registered. */
    readonly epoch?: string;
  };
  /** Executions whose handlers have not returned, in all lanes. */
  readonly running: number;
  /** How many executions may run at once, in all lanes; undefined where there is no node. */
  readonly slots?: number;
  readonly lanes: readonly LaneSnapshot[];
  readonly buckets: readonly BucketSnapshot[];
  /** Undefined until the node is registered, and with `worker: false`. */
  readonly heartbeat?: HeartbeatSnapshot;
  /** As {@link RatchetSnapshot.heartbeat}. */
  readonly eventLoop?: EventLoopSnapshot;
  /** As {@link ClusterCoordinator.health} says. */
  readonly coordinator: {
    readonly state: 'none' | 'connected' | 'connecting' | 'down';
    readonly since?: Date;
    readonly detail?: string;
  };
  readonly faults: {
    /** What fails now and is tried again. */
    readonly standing: readonly string[];
    /** Of whatever age: it may be mended long since. */
    readonly last?: FaultSnapshot;
  };
  /** Of history, when this node was the one that looked last; one node of the cluster does, every hour. */
  readonly partitions?: { readonly daysAhead: number; readonly ageMs: number };
}

/** A node of the cluster, as the database knows it: see {@link RatchetMonitor.nodes}. */
export interface NodeInfo {
  readonly id: string;
  readonly epoch: string;
  readonly host: string;
  readonly pid: number;
  /** Of this package. */
  readonly version: string;
  readonly lanes: readonly string[];
  readonly handlers: readonly string[];
  /** Ids of the recurring schedules that its methods are annotated with. */
  readonly schedules: readonly string[];
  /** `stale`: no heartbeat for longer than the grace; others declare it dead. `draining`: it finishes what runs. */
  readonly status: 'alive' | 'draining' | 'stale';
  /** Since when it is drained by hand ({@link RatchetBuckets.drainNode}): it lives, and has no buckets. Absent: it is not. */
  readonly drainedAt?: Date;
  readonly startedAt: Date;
  readonly heartbeatAt: Date;
  /** By the database's clock. */
  readonly heartbeatAgeMs: number;
  /** Running executions, as of its last heartbeat. */
  readonly running: number;
  /** How long its event loop stood still at worst before its last heartbeat, in milliseconds. */
  readonly lagMs: number;
}
