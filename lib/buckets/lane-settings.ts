import { type JobPriority } from '../jobs/priority.js';

/** What one lane is given on this node. */
export interface LaneSettings {
  /** The most executions at once. */
  readonly concurrency: number;
  /** Slots of the node that other lanes leave alone. */
  readonly reserved: number;
  /** A number: so many, each for all priorities. By priority: so many for that one alone; with 0 it is switched off. */
  readonly buckets: number | Readonly<Record<JobPriority, number>>;
  /** Jobs that each bucket may claim ahead of its free slots. */
  readonly bufferSize: number;
}
