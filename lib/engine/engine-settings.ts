import { type LaneSettings } from '../buckets/lane-settings.js';
import { type ResolvedBackoff } from '../jobs/backoff.js';
import { type PollSettings } from './poll-pace.js';

/** What the engine needs of the module's options, resolved: milliseconds, no undefined. Made by `resolveOptions`. */
export interface EngineSettings {
  /** `drain`: it executes nothing, and takes back the work of nodes that stopped. */
  readonly worker: boolean | 'drain';
  /** The lanes that the configuration names. */
  readonly lanes: ReadonlyMap<string, LaneSettings>;
  /** The slots of the node, in all its lanes. */
  readonly concurrency: number;
  readonly maxRetries: number;
  readonly backoff: ResolvedBackoff;
  readonly priorityBoostMs: number;
  readonly poll: PollSettings;
  readonly heartbeat: {
    /** The wait between two, before it is fitted to the cluster. */
    readonly baseMs: number;
    /** A node without one for longer counts as dead. */
    readonly graceMs: number;
    /** It goes on so long after the event loop's last sign of life. */
    readonly stallMs: number;
  };
  /** Due jobs that nobody serves for longer get a fallback bucket. */
  readonly fallbackAfterMs: number;
  readonly maxCrashRedeliveries: number;
  readonly drainTimeoutMs: number;
  readonly recurring: {
    /** An annotated schedule that no live node has had for longer is removed. */
    readonly convergenceMs: number;
  };
  readonly limits: {
    readonly payloadBytes: number;
    readonly resultBytes: number;
    readonly errorBytes: number;
  };
  readonly retention: {
    readonly historyMs: number;
    readonly historyBytes: number;
    readonly executionsMs: number;
    readonly deadLetterMs: number;
  };
}
