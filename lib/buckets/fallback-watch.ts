import { type Clock } from '../cluster/clock.js';
import { counted } from '../errors/counted.js';
import { nearest } from '../errors/nearest.js';
import { JOB_PRIORITIES, priorityOf } from '../jobs/priority.js';
import { type EngineEvents } from '../observability/engine-events.js';
import {
  type HandlerFilter,
  type JobStore,
  type NodeRef,
  type StarvingAnswer,
  type StarvingStream,
} from '../store/job-store.js';
import { Bucket } from './bucket.js';

/** A node looks at least this often, and five times while a job comes to be due for long. */
const LONGEST_WAIT_MS = 30_000;
const LOOKS = 5;
/** Part of a wait that is random: nodes that started together do not look as one. */
const JITTER = 0.2;
/** After so many looks that found nothing for it, a fallback bucket ends. */
const IDLE_LOOKS = 3;
/** From so many on the store has stopped counting. */
const COUNTED = 1_000;

/** Who runs the jobs of a fallback bucket. */
export interface FallbackHost {
  /** Those that claim. */
  readonly buckets: readonly Bucket[];
  /** The ids of all that are not removed yet: also of those that only finish. */
  readonly known: readonly string[];
  /** Whether executions are in it. */
  busy(bucket: Bucket): boolean;
  /** Claims into it from now on. */
  open(bucket: Bucket): void;
  /** It claims no more, ends what runs, and goes. */
  retire(bucket: Bucket): void;
}

export interface FallbackWatchParts {
  readonly store: Pick<JobStore, 'starving' | 'openFallback' | 'fallbackNeeded' | 'setBucketStatus'>;
  readonly clock: Clock;
  readonly events: EngineEvents;
  readonly host: FallbackHost;
  /** What the node can run. */
  readonly handlers: readonly HandlerFilter[];
  readonly afterMs: number;
  readonly logger: { log(message: string): void; warn(message: string): void };
  readonly onFault: (error: unknown) => void;
}

/**
 * Looks for due jobs that no bucket of a live node serves, and sees to it that they run all the same: a node that has their handlers
 * makes a fallback bucket for their lane, one in the whole cluster, and says what is misconfigured.
 *
 * A lane must starve in two looks in a row, so that a node that is restarted is no news. The bucket serves every priority of
 * the lane. It ends when other buckets serve all that it could run, or when there has been nothing to run for a while; when its node
 * leaves or dies, it goes the way of that node's other buckets, and another node's next look makes the next one.
 */
export class FallbackWatch {
  readonly #parts: FallbackWatchParts;
  #node: NodeRef | undefined;
  #cancelTimer: (() => void) | undefined;
  #round: Promise<void> | undefined;
  #stopped = false;
  /** Lanes that starved when it looked last. */
  #starved = new Set<string>();
  /** Looks in a row that found nothing for a bucket. */
  readonly #idleLooks = new Map<string, number>();

  constructor(parts: FallbackWatchParts) {
    this.#parts = parts;
  }

  /** Begins, or goes on under another name. */
  attend(node: NodeRef): void {
    this.#node = node;
    if (!this.#cancelTimer) this.#arm();
  }

  /** No further look; resolves when the one under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    await this.#round;
  }

  /** One look. Never rejects. */
  runOnce(): Promise<void> {
    this.#round ??= this.#look().finally(() => (this.#round = undefined));
    return this.#round;
  }

  #arm(): void {
    if (this.#stopped) return;
    const { clock, afterMs } = this.#parts;
    const waitMs = Math.min(LONGEST_WAIT_MS, afterMs / LOOKS) * (1 + JITTER * (2 * Math.random() - 1));
    this.#cancelTimer = clock.timer(waitMs, () => void this.runOnce().then(() => this.#arm()), true);
  }

  async #look(): Promise<void> {
    const { store, host, handlers, afterMs, events, onFault } = this.#parts;
    const node = this.#node;
    if (!node) return;
    try {
      for (const bucket of host.buckets) await this.#apart(() => this.#judge(bucket));
      const answer = await store.starving({ node, handlers, afterMs, known: host.known });
      const lanes = new Set(answer.streams.map(({ lane }) => lane));
      for (const lane of lanes) {
        if (this.#starved.has(lane)) await this.#apart(() => this.#open(node, lane, answer));
      }
      this.#starved = lanes;
      events.emit('fallback_looked', { node: node.id, starving: [...lanes] });
    } catch (error) {
      if (!this.#stopped) onFault(error);
    }
  }

  /** One that fails does not keep the look from the others. */
  async #apart(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      if (!this.#stopped) this.#parts.onFault(error);
    }
  }

  async #open(node: NodeRef, lane: string, { streams, served }: StarvingAnswer): Promise<void> {
    const { store, host, events, logger } = this.#parts;
    if (this.#stopped) return;
    const ref = await store.openFallback({ node, lane, known: host.known });
    if (!ref) return;
    const bucket = new Bucket(ref, store, events);
    events.emit('fallback', { bucket: ref.id, lane, change: 'opened' });
    logger.warn(
      warning(
        lane,
        streams.filter((stream) => stream.lane === lane),
        served,
      ),
    );
    host.open(bucket);
  }

  async #judge(bucket: Bucket): Promise<void> {
    const { store, host, handlers } = this.#parts;
    const { id } = bucket.ref;
    const need = await store.fallbackNeeded({ bucket: bucket.ref, handlers });
    // What runs may come back for a retry.
    const idleLooks = need === 'idle' && !host.busy(bucket) ? (this.#idleLooks.get(id) ?? 0) + 1 : 0;
    this.#idleLooks.set(id, idleLooks);
    if (need === 'served') this.#retire(bucket, 'a live node serves it again');
    if (idleLooks >= IDLE_LOOKS) this.#retire(bucket, 'nothing is left to run');
  }

  #retire(bucket: Bucket, why: string): void {
    const { host, events, logger } = this.#parts;
    const { id, lane } = bucket.ref;
    this.#idleLooks.delete(id);
    if (this.#stopped) return;
    events.emit('fallback', { bucket: id, lane, change: 'retired' });
    logger.log(`lane "${lane}": ${why}: its fallback bucket on this node ends`);
    host.retire(bucket);
  }
}

/** One line: which jobs, since when, and what is missing in the configuration. */
function warning(lane: string, streams: readonly StarvingStream[], served: readonly string[]): string {
  const jobs = streams.map(({ priority, due, oldestMs, names }) => {
    const count = due >= COUNTED ? `${due} or more due jobs` : counted(due, 'due job');
    return `${count} of priority ${priorityOf(priority)}, the oldest for ${Math.round(oldestMs / 1_000)} s (${[...names].sort().join(', ')})`;
  });
  const rest = 'a fallback bucket of this node runs them until one does';
  const near = nearest(lane, served);
  if (!served.includes(lane)) {
    return (
      `no live node serves lane "${lane}": ${jobs.join('; ')}; ${rest}; add it to lanes, or fix the name where they are enqueued` +
      (near === undefined ? '' : `; nearest: ${near}`)
    );
  }
  const priorities = JOB_PRIORITIES.filter((name) =>
    streams.some(({ priority }) => priorityOf(priority) === name),
  );
  const options = priorities.map((name) => `lanes.${lane}.buckets.${name}`);
  return (
    `no live node serves priority ${priorities.join(', ')} of lane "${lane}": ${jobs.join('; ')}; ${rest}; ` +
    `give ${options.join(', ')} a bucket on some node, or cancel them`
  );
}
