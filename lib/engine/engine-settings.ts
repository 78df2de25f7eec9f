import { type ResolvedBackoff } from '../jobs/backoff.js';

/** What the engine needs of the module's options, resolved: milliseconds, no undefined. Made by `resolveOptions`. */
export interface EngineSettings {
  readonly worker: boolean;
  /** Concurrency of lanes named in the configuration. */
  readonly lanes: ReadonlyMap<string, { readonly concurrency: number }>;
  /** For the default lane, and for lanes that only a definition names. */
  readonly concurrency: number;
  readonly maxRetries: number;
  readonly backoff: ResolvedBackoff;
  readonly priorityBoostMs: number;
  readonly pollIntervalMs: number;
  readonly maxCrashRedeliveries: number;
  readonly drainTimeoutMs: number;
  readonly limits: {
    readonly payloadBytes: number;
    readonly resultBytes: number;
    readonly errorBytes: number;
  };
  readonly retention: {
    readonly historyMs: number;
    readonly executionsMs: number;
    readonly deadLetterMs: number;
  };
}
