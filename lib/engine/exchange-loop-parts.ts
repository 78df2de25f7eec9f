import { type Bucket } from '../buckets/bucket.js';
import { type Clock } from '../cluster/clock.js';
import { type DebugPoints } from '../observability/debug-points.js';
import { type EngineEvents } from '../observability/engine-events.js';
import {
  type ExchangeAnswer,
  type ForeignStream,
  type HandlerFilter,
  type JobStore,
} from '../store/job-store.js';
import { type EngineFaults } from './engine-faults.js';
import { type LateRecorder } from './late-recorder.js';
import { type PollSettings } from './poll-pace.js';
import { type ExecutionStarter } from './running-claims.js';
import { type ExecutorHooks } from './running-execution.js';
import { type BucketSlots } from './slots.js';
import { type Suspects } from './suspects.js';

/** Makes the executor of one bucket: what its executions report goes through the hooks. */
export type ExecutorFactory = (hooks: ExecutorHooks) => ExecutionStarter;

/** What all buckets of a node share. */
export interface LoopEnvironment {
  readonly handlers: readonly HandlerFilter[];
  readonly priorityBoostMs: number;
  readonly poll: PollSettings;
  /** Whether wakeups of other nodes arrive now. */
  readonly wakeupsExpected: () => boolean;
  readonly store: JobStore;
  readonly clock: Clock;
  readonly events: EngineEvents;
  readonly debug: DebugPoints;
  readonly faults: EngineFaults;
  readonly late: LateRecorder;
  readonly executor: ExecutorFactory;
  readonly suspects: Suspects;
  /** Jobs were inserted by an exchange that took so long. */
  readonly onSpawned: (jobs: ExchangeAnswer['spawned'], tookMs: number) => void;
  /** A bucket of the lane has free slots and found nothing due. */
  readonly onHungry: (lane: string) => void;
  readonly onForeign: (lane: string, streams: readonly ForeignStream[]) => void;
  /** Jobs of a lane are for others now, at once or in so many milliseconds: they were given back, or this node will not be there. */
  readonly onHandedOver: (lane: string, dueInMs?: number) => void;
}

/** What one bucket's loop is made of. */
export interface ExchangeLoopParts extends LoopEnvironment {
  readonly bucket: Bucket;
  readonly slots: BucketSlots;
  /** Jobs that it may claim ahead of its free slots. */
  readonly bufferSize: number;
  /** Error text of a claim that is given back because the node stops. */
  readonly releaseError: string;
  /** Called once, when the database says that the bucket is no longer ours. */
  readonly onDeposed: () => void;
  /** Called once, when the database says that somebody has moved the bucket to `completing`: by then it claims no more. */
  readonly onCompleting: () => void;
}
