/**
 * The catalogue of what happens inside the engine: every event and its measurements, in this file only. Listeners see
 * plain values (ids, counts, milliseconds), so that this folder depends on nothing.
 */
export interface EngineEventMap {
  /** The node has a row and an epoch. */
  registered: { readonly node: string; readonly epoch: string };
  /** What an earlier process of the same node id left behind, or a bucket that does not exist held, was taken back. */
  rescued: { readonly buckets: number; readonly recovered: number; readonly failed: number };
  /** The status of a bucket of ours changed. */
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
  /** Nothing is left to do until a timer or a wakeup. */
  idle: { readonly bucket: string; readonly lane: string };
  claimed: {
    readonly bucket: string;
    readonly jobId: string;
    readonly claimSeq: string;
    readonly name: string;
  };
  /** The outcome of an execution is durable. */
  settled: {
    readonly bucket: string;
    readonly jobId: string;
    readonly claimSeq: string;
    readonly outcome: string;
  };
  /** The claim no longer stood: the outcome was discarded, or the execution was told to stop. */
  lost: { readonly bucket: string; readonly jobId: string; readonly claimSeq: string };
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
  /** One of the steps of the shutdown is done. */
  drain: { readonly step: DrainStep; readonly running: number; readonly tookMs: number };
  maintenance: { readonly task: string; readonly outcome: 'done' | 'elsewhere' | 'failed' };
}

/** The steps of the shutdown, in order. */
export const DRAIN_STEPS = ['claims', 'timers', 'wait', 'release', 'abort', 'deregister', 'close'] as const;
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
