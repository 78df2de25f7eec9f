import {
  type ExecutionEvent,
  type JobCanceledEvent,
  type JobEnqueuedEvent,
  type JobUnsavedEvent,
  type ScheduleFiredEvent,
  type ScheduleMissedEvent,
  type ScheduleSkippedEvent,
} from './ratchet-event-map.js';

/** An execution whose outcome is durable. */
export interface SettledExecution extends ExecutionEvent {
  readonly bucket: string;
  readonly outcome: string;
  /** As it is stored. */
  readonly error?: string | undefined;
  /** Of the job, this outcome included. */
  readonly failures: number;
  readonly crashes: number;
  readonly delayMs?: number | undefined;
  /** Until the body ended, or timed out; none when it was given back before. */
  readonly durationMs?: number | undefined;
  /** False: it only waited in a buffer, and was given back. */
  readonly begun?: boolean;
}

/**
 * The catalogue of what happens inside the engine: every event and its measurements, in this file only. Listeners see
 * plain values (ids, counts, milliseconds), so that this folder depends on nothing.
 */
export interface EngineEventMap {
  /** The node has a row and an epoch. */
  registered: { readonly node: string; readonly epoch: string };
  /** What an earlier process of the same node id left behind, or a bucket that does not exist held, was taken back. */
  rescued: {
    readonly buckets: number;
    readonly recovered: number;
    readonly failed: number;
    /** Claimed ahead and never begun; absent when there are none. */
    readonly unbegun?: number;
  };
  /** A rescue moved a job to the dead letter. */
  buried: {
    readonly jobId: string;
    readonly name: string;
    readonly lane: string;
    /** Who ran it last; empty when nobody knows. */
    readonly node: string;
    readonly claimSeq: string;
    readonly execution: number;
    readonly error: string;
    readonly failures: number;
    readonly crashes: number;
  };
  /** A heartbeat was answered. */
  beat: { readonly node: string; readonly alive: boolean; readonly nodes: number };
  /** Heartbeats were not acknowledged within the grace, or are again: whether the node may claim. */
  lease: { readonly node: string; readonly held: boolean };
  /** The event loop stood still. */
  loop_lag: { readonly node: string; readonly lagMs: number; readonly handlers: readonly string[] };
  /** This node was declared dead by others; it goes on under another epoch. */
  declared_dead: { readonly node: string; readonly epoch: string };
  /** This node declared another one dead. */
  node_dead: { readonly node: string; readonly epoch: string; readonly heartbeatAgeMs: number };
  /** Due jobs of a lane that nobody serves got a bucket on this node, or need it no more. */
  fallback: { readonly bucket: string; readonly lane: string; readonly change: 'opened' | 'retired' };
  /** A look for such lanes, and which of them starve. */
  fallback_looked: { readonly node: string; readonly starving: readonly string[] };
  /** The status of a bucket of ours, or of one that we take back, changed. */
  bucket: { readonly bucket: string; readonly lane: string; readonly from: string; readonly to: string };
  /** An exchange was answered and its answer is worked in. */
  turn: {
    readonly bucket: string;
    readonly lane: string;
    readonly sent: number;
    readonly recorded: number;
    readonly skipped: number;
    readonly lost: number;
    readonly wanted: number;
    readonly claimed: number;
    readonly tookMs: number;
  };
  /** A bucket polls at another pace: `waitMs` is its longest wait, undefined while it does not poll. */
  pace: {
    readonly bucket: string;
    readonly lane: string;
    readonly state: string;
    readonly waitMs: number | undefined;
  };
  /** Nothing is left to do until a timer or a wakeup. */
  idle: { readonly bucket: string; readonly lane: string };
  /** A job was committed, by this process. */
  enqueued: JobEnqueuedEvent;
  /** A buffered job was not saved. */
  unsaved: JobUnsavedEvent;
  /** A job was canceled, by this process. */
  withdrawn: JobCanceledEvent;
  claimed: ExecutionEvent & { readonly bucket: string; readonly waitedMs: number };
  /** The outcome of an execution is durable. */
  settled: SettledExecution;
  /** The claim no longer stood: the outcome was discarded, or the execution was told to stop. Once for each claim. */
  lost: ExecutionEvent & { readonly bucket: string; readonly reason: 'canceled' | 'claim' };
  /** An execution was told to stop because its job was canceled. */
  canceled: { readonly jobId: string; readonly claimSeq: string };
  /** A body that ended after its claim was closed; `recorded` says whether the closed row took it. */
  late: {
    readonly jobId: string;
    readonly claimSeq: string;
    readonly outcome: string;
    readonly recorded: boolean;
  };
  /** A statement failed. */
  fault: {
    readonly where: string;
    readonly kind: string;
    readonly message: string;
    readonly retryInMs: number;
  };
  /** The first statement that worked after faults. */
  recovered: { readonly where: string; readonly failures: number };
  /** A look for claims that nobody knows, after an unknown commit or by the clock. */
  reconciled: {
    readonly cause: 'unknown_commit' | 'interval';
    readonly buckets: number;
    readonly strays: number;
    readonly recorded: number;
    readonly lost: number;
  };
  /** A bucket was taken away. */
  deposed: { readonly bucket: string; readonly lane: string };
  probe: {
    readonly bucket: string;
    readonly lane: string;
    readonly streams: number;
    readonly tookMs: number;
  };
  floor: {
    readonly bucket: string;
    readonly lane: string;
    readonly priority: number;
    readonly change: 'raised' | 'lowered' | 'dropped';
    readonly place: string | undefined;
  };
  /** Claims pass over due jobs that this node has no handler for. */
  passed_over: { readonly lane: string; readonly names: readonly string[]; readonly jobs: number };
  /** A look at the schedules that are due, and what came of it. `held`: another node does it. */
  schedules_looked: { readonly due: number; readonly held: boolean; readonly nextInMs: number | undefined };
  /** An occurrence has become a job, or, with scope `node`, runs. */
  schedule_fired: ScheduleFiredEvent;
  /** Occurrences that nobody saw to in time, and that the misfire policy dropped. */
  schedule_missed: ScheduleMissedEvent;
  /** An occurrence does not run because of the overlap rule. */
  schedule_skipped: ScheduleSkippedEvent;
  /** A schedule cannot be read or fired, and is left out until somebody mends it. */
  schedule_broken: { readonly scheduleId: string; readonly fault: string };
  /** A job of a schedule has ended on this node. */
  schedule_job_ended: { readonly scheduleId: string; readonly jobId: string };
  /** Occurrences that waited for a job to end were looked for. */
  schedules_promoted: { readonly jobs: number };
  /** The schedules that this process is annotated with are in the database. */
  schedules_registered: {
    readonly created: readonly string[];
    readonly changed: readonly string[];
    readonly unchanged: number;
  };
  /** A run of scope `node` has ended. */
  node_run: {
    readonly scheduleId: string;
    readonly scheduledFor: Date;
    readonly outcome: string;
    readonly error?: string | undefined;
  };
  /** Messages of other nodes arrive again (or for the first time), or do not: then work is found by polling. */
  coordinator: { readonly state: 'up' | 'down'; readonly detail: string };
  /** One of the steps of the shutdown is done. */
  drain: { readonly step: DrainStep; readonly running: number; readonly tookMs: number };
  maintenance: { readonly task: string; readonly outcome: 'done' | 'elsewhere' | 'failed' };
}

/** The steps of the shutdown, in order. */
export const DRAIN_STEPS = [
  'claims',
  'timers',
  'intake',
  'wait',
  'release',
  'abort',
  'deregister',
  'close',
] as const;
export type DrainStep = (typeof DRAIN_STEPS)[number];

export type EngineEvent = keyof EngineEventMap;
type Listener = (payload: never) => void;

/**
 * Tells whoever listens. A listener that throws stops nobody: neither the engine nor the other listeners. Tests await
 * {@link EngineEvents.next} instead of sleeping.
 */
export class EngineEvents {
  readonly #listeners = new Map<EngineEvent, Set<Listener>>();
  readonly #onListenerError: (event: EngineEvent, error: unknown) => void;

  constructor(onListenerError: (event: EngineEvent, error: unknown) => void = () => {}) {
    this.#onListenerError = onListenerError;
  }

  /** Returns the function that unregisters. */
  on<E extends EngineEvent>(event: E, listener: (payload: EngineEventMap[E]) => void): () => void {
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** The next event of that kind that `accept` accepts. */
  next<E extends EngineEvent>(
    event: E,
    accept: (payload: EngineEventMap[E]) => boolean = () => true,
  ): Promise<EngineEventMap[E]> {
    return new Promise((resolve) => {
      const off = this.on(event, (payload) => {
        if (!accept(payload)) return;
        off();
        resolve(payload);
      });
    });
  }

  /** True when somebody listens: per-job events are not even made otherwise. */
  heard(event: EngineEvent): boolean {
    return (this.#listeners.get(event)?.size ?? 0) > 0;
  }

  emit<E extends EngineEvent>(event: E, payload: EngineEventMap[E]): void {
    const listeners = this.#listeners.get(event);
    if (!listeners) return;
    for (const listener of [...listeners]) {
      try {
        (listener as (payload: EngineEventMap[E]) => void)(payload);
      } catch (error) {
        this.#tell(event, error);
      }
    }
  }

  #tell(event: EngineEvent, error: unknown): void {
    try {
      this.#onListenerError(event, error);
    } catch {
      // A logger that throws must not stop the engine either.
    }
  }
}
