import { type OnApplicationBootstrap } from '@nestjs/common';
import { type Clock } from '../cluster/clock.js';
import { nearest } from '../errors/nearest.js';
import { showValue } from '../errors/show-value.js';
import { type NodeView } from '../store/job-store.js';

/** What a look at the nodes has found is good for so long. */
const LOOK_EVERY_MS = 30_000;
/** A lane is told once in so long. */
const LINE_EVERY_MS = 60_000;
/** Beyond it their number says more. */
const MOST_NAMED = 10;
/** More lanes at once are no misspelling. */
const MOST_DOUBTED = 1_000;

/** A handler of this process, and the lane that its definition names. */
export interface LaneOfHandler {
  readonly lane: string;
  /** `InvoiceJobs.send`. */
  readonly owner: string;
}

export interface ServedLanesParts {
  readonly nodes: () => Promise<readonly Pick<NodeView, 'lanes'>[]>;
  /** The lanes that this process serves itself. Asked once discovery is done. */
  readonly own: () => readonly string[];
  /** Asked once discovery is done. */
  readonly handlers: () => readonly LaneOfHandler[];
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly logger: { warn(message: string): void };
}

/**
 * Says that jobs go into a lane that no live node serves: misspelt, as a rule. An enqueue asks what is known and never waits; only a
 * lane that is not known makes it look at the list of nodes, in the background and now and then. While no node lives, nothing can be
 * said of spelling, and nothing is.
 */
export class ServedLanes implements OnApplicationBootstrap {
  readonly #parts: ServedLanesParts;
  #served: ReadonlySet<string> | undefined;
  #nodes = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;
  /** Lanes to judge when the look is done, with what is to be said of them. */
  readonly #doubted = new Map<string, string>();
  readonly #toldAtMs = new Map<string, number>();

  constructor(parts: ServedLanesParts) {
    this.#parts = parts;
  }

  /** Handlers, too, name lanes: in a process that runs none of them, nothing else would say so. */
  onApplicationBootstrap(): void {
    const owners = new Map<string, string[]>();
    for (const { lane, owner } of this.#parts.handlers())
      owners.set(lane, [...(owners.get(lane) ?? []), owner]);
    for (const [lane, names] of owners) {
      this.#doubt(lane, `the definition of ${listed([...new Set(names)])} names lane ${showValue(lane)}`);
    }
  }

  /** A job goes into the lane. Cannot throw. */
  note(lane: string): void {
    if (this.#served?.has(lane)) return;
    this.#doubt(lane, `a job was enqueued into lane ${showValue(lane)}`);
  }

  /** Resolves when no look is under way. For tests. */
  async settled(): Promise<void> {
    await this.#looking;
  }

  #doubt(lane: string, what: string): void {
    this.#served ??= new Set(this.#parts.own());
    if (this.#served.has(lane) || this.#doubted.size >= MOST_DOUBTED) return;
    if (!this.#doubted.has(lane)) this.#doubted.set(lane, what);
    if (this.#looking) return;
    if (this.#parts.clock.monotonicMs() - this.#lookedAtMs < LOOK_EVERY_MS) this.#judge();
    else this.#looking = this.#look().finally(() => (this.#looking = undefined));
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { nodes, own, clock } = this.#parts;
    try {
      const found = await nodes();
      this.#nodes = found.length;
      this.#served = new Set([...own(), ...found.flatMap(({ lanes }) => lanes)]);
    } catch {
      // Whoever enqueues hears of a database that is away; this is a line of the log.
      this.#nodes = 0;
    }
    this.#lookedAtMs = clock.monotonicMs();
    this.#judge();
  }

  #judge(): void {
    const doubted = [...this.#doubted];
    this.#doubted.clear();
    if (this.#nodes === 0) return;
    const nowMs = this.#parts.clock.monotonicMs();
    for (const [lane, atMs] of this.#toldAtMs) if (nowMs - atMs >= LINE_EVERY_MS) this.#toldAtMs.delete(lane);
    for (const [lane, what] of doubted) {
      if (this.#served?.has(lane) || this.#toldAtMs.has(lane)) continue;
      this.#toldAtMs.set(lane, nowMs);
      this.#tell(lane, what);
    }
  }

  #tell(lane: string, what: string): void {
    const served = [...(this.#served ?? [])].sort();
    const near = nearest(lane, served);
    const others = served.length === 0 ? 'none' : listed(served.map((name) => showValue(name)));
    const meant = near === undefined ? '' : ` did you mean ${showValue(near)}?`;
    try {
      this.#parts.logger.warn(
        `${what}, which no live node serves;${meant} served are ${others}; correct the name, or let a ` +
          'node serve the lane (option "lanes", or a handler whose definition names it)',
      );
    } catch {
      // A logger that throws must not make an enqueue fail.
    }
  }
}

function listed(names: readonly string[]): string {
  const more = names.length > MOST_NAMED ? `, and ${names.length - MOST_NAMED} more` : '';
  return names.slice(0, MOST_NAMED).join(', ') + more;
}
