import { type Clock } from '../cluster/clock.js';
import { type ForeignStream } from '../store/job-store.js';
import { type LineLogger } from './line-logger.js';

/** A lane is told again when other names stand in the way, and after this long at the earliest. */
const AGAIN_AFTER_MS = 10 * 60_000;

/** Says that due jobs have no handler on this node: once per lane and set of names, not at every look. */
export class ForeignReport {
  readonly #told = new Map<string, { readonly names: string; readonly atMs: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly logger: LineLogger,
  ) {}

  tell(lane: string, streams: readonly ForeignStream[]): void {
    const names = [...new Set(streams.flatMap((stream) => stream.names))].sort().join(', ');
    const nowMs = this.clock.monotonicMs();
    const before = this.#told.get(lane);
    if (before && (before.names === names || nowMs - before.atMs < AGAIN_AFTER_MS)) return;
    this.#told.set(lane, { names, atMs: nowMs });
    const jobs = streams.reduce((sum, stream) => sum + stream.foreign, 0);
    this.logger.warn(
      `lane "${lane}": due jobs that this node has no handler for (or only an older version of it) are passed over: ` +
        `${names} (${jobs} or more); run a node that has their handlers, give them a lane of their own, or cancel them`,
    );
  }
}
