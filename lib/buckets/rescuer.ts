import { counted } from '../errors/counted.js';
import { type Clock } from '../cluster/clock.js';
import { type EngineEvents } from '../observability/engine-events.js';
import {
  type DrainedBucket,
  type JobStore,
  type LostReport,
  type NodeRef,
  type RescueReport,
} from '../store/job-store.js';

export interface RescuerParts {
  readonly store: Pick<JobStore, 'rescueLost'>;
  readonly clock: Clock;
  readonly events: EngineEvents;
  readonly graceMs: number;
  readonly maxCrashRedeliveries: number;
  readonly logger: { warn(message: string): void; error(message: string): void };
  /** Jobs of these lanes are due again. */
  readonly onWork: (lanes: readonly string[]) => void;
  readonly onFault: (error: unknown) => void;
}

/** What cannot be taken back is said again after so long. */
const STUCK_LINE_EVERY_MS = 60_000;

/**
 * Takes back the work of nodes that stopped, when a heartbeat has seen that there is some. One round at a time; a call during
 * one asks for another. Every healthy node may do it at once: the store gives each bucket to one of them, and leaves one with rows
 * that could not be taken back alone for a while.
 */
export class Rescuer {
  readonly #parts: RescuerParts;
  readonly #stopping = new AbortController();
  #node: NodeRef | undefined;
  #round: Promise<void> | undefined;
  #again = false;
  #mayDeclare = false;
  #nextStuckLineMs = 0;

  constructor(parts: RescuerParts) {
    this.#parts = parts;
  }

  /** Never rejects. `mayDeclare`: not only what has no owner is taken back, nodes past the grace are declared dead first. */
  run(node: NodeRef, mayDeclare: boolean): Promise<void> {
    this.#node = node;
    this.#mayDeclare = mayDeclare;
    if (this.#stopping.signal.aborted) return this.#round ?? Promise.resolve();
    if (this.#round) this.#again = true;
    this.#round ??= this.#rounds().finally(() => (this.#round = undefined));
    return this.#round;
  }

  /** Ends a round between two statements. What is left is for the next node. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#round;
  }

  async #rounds(): Promise<void> {
    do {
      this.#again = false;
      await this.#once(this.#node as NodeRef);
    } while (this.#isAskedAgain());
  }

  #isAskedAgain(): boolean {
    return this.#again && !this.#stopping.signal.aborted;
  }

  async #once(node: NodeRef): Promise<void> {
    const { store, graceMs, maxCrashRedeliveries, onFault } = this.#parts;
    const { signal } = this.#stopping;
    try {
      const grace = this.#mayDeclare ? { graceMs } : {};
      this.#tell(await store.rescueLost({ node, maxCrashRedeliveries, ...grace }, signal));
    } catch (error) {
      if (!signal.aborted) onFault(error);
    }
  }

  #tell({ dead, drained, faults }: LostReport): void {
    const { events, logger, onWork, onFault } = this.#parts;
    for (const { id, epoch, host, pid, heartbeatAgeMs } of dead) {
      events.emit('node_dead', { node: id, epoch, heartbeatAgeMs });
      logger.warn(
        `node ${id} (host ${host}, pid ${pid}) sent no heartbeat for ${Math.round(heartbeatAgeMs / 1_000)} s: declared dead, its jobs are taken back`,
      );
    }
    for (const bucket of drained) this.#tellBucket(bucket);
    const [fault] = faults;
    if (fault) onFault(fault.error);
    this.#tellStuck(drained);
    const worked = drained.filter((bucket) => taken(bucket) > 0);
    if (worked.length > 0) onWork([...new Set(worked.map(({ lane }) => lane))]);
  }

  #tellBucket(bucket: DrainedBucket): void {
    const { events, logger } = this.#parts;
    const { id, lane, node, was, recovered, failed, unbegun = 0, buried, stuck } = bucket;
    // Tried in vain, once more.
    if (taken(bucket) === 0 && stuck.length > 0) return;
    const way = [...(was ? [was] : []), 'lost', 'draining', stuck.length > 0 ? 'lost' : 'ready_to_delete'];
    for (const [index, to] of way.slice(1).entries()) {
      events.emit('bucket', { bucket: id, lane, from: way[index] as string, to });
    }
    if (taken(bucket) === 0) return;
    const counts = { recovered, failed, ...(unbegun > 0 ? { unbegun } : {}) };
    tellRescued(events, { buckets: 1, ...counts, ...(buried ? { buried } : {}) });
    logger.warn(`bucket ${id} of lane "${lane}", lost by node ${node.id}: ${rescuedLine(counts)}`);
  }

  #tellStuck(drained: readonly DrainedBucket[]): void {
    const { clock, logger } = this.#parts;
    const stuck = drained.flatMap((bucket) => bucket.stuck);
    if (stuck.length === 0) return;
    const nowMs = clock.monotonicMs();
    if (nowMs < this.#nextStuckLineMs) return;
    this.#nextStuckLineMs = nowMs + STUCK_LINE_EVERY_MS;
    logger.error(
      `${counted(stuck.length, 'job')} of nodes that stopped cannot be taken back (${stuck.slice(0, 3).join(', ')}): a transaction holds their rows, ` +
        'or the rows are broken; the others run again, these are tried again every few seconds',
    );
  }
}

type Counts = Pick<RescueReport, 'recovered' | 'failed' | 'unbegun'>;

/** Jobs that were given back, or given up. */
export const taken = ({ recovered, failed, unbegun = 0 }: Counts): number => recovered + failed + unbegun;

/** What became of them, for people. */
export function rescuedLine({ recovered, failed, unbegun = 0 }: Counts): string {
  const waited = unbegun > 0 ? `; ${counted(unbegun, 'job')} that had not begun, uncharged` : '';
  return `${counted(recovered, 'job')} to run again, ${failed} over the crash budget and in the dead letter${waited}`;
}

/** What every rescue tells, whichever it is. */
export function tellRescued(events: EngineEvents, { buried = [], ...counts }: RescueReport): void {
  events.emit('rescued', counts);
  for (const { id, executions, node, ...job } of buried) {
    events.emit('buried', { ...job, jobId: id, execution: executions, node: node ?? '' });
  }
}
