import { laneSettings } from '../../buckets/lanes-of-node.js';
import { type EngineSettings } from '../../engine/engine-settings.js';
import { type JobContext } from '../../jobs/job-context.js';
import { type LineLogger } from '../../engine/line-logger.js';

/** What is known of an awaited job without asking. */
export interface AboutJob {
  readonly name: string;
  readonly lane: string;
}

type Runner = Pick<JobContext, 'name' | 'lane'>;

/** Between two lines that slots are full of waiting handlers. */
const LEAST_GAP_MS = 60_000;
/** Of all lanes, which share the slots of the node. */
const NODE = Symbol('node');

/**
 * Handlers that await jobs whose slots they may hold. When all slots of their lane, or of the node, are held so, none is left to run what
 * they wait for. Says so: for jobs of their own lane once for each pair of names, before it happens, and louder while it is the case. A
 * lane that has slots reserved is in no danger from other lanes.
 */
export class LaneWaits {
  /** Executions that wait, by lane and of the node, with how many results each awaits. */
  readonly #waiting = new Map<string | typeof NODE, Map<Runner, number>>();
  readonly #told = new Set<string>();
  readonly #fullMs = new Map<string | typeof NODE, number>();

  constructor(
    private readonly settings: Pick<EngineSettings, 'lanes' | 'concurrency'>,
    private readonly clock: { monotonicMs(): number },
    private readonly logger: LineLogger,
  ) {}

  /** `running` awaits `awaited` from now on; returns the function to call when it does no more. */
  enter(running: Runner, awaited: AboutJob | undefined): (() => void) | undefined {
    if (!awaited) return undefined;
    const own = awaited.lane === running.lane;
    if (!own && laneSettings(this.settings, awaited.lane).reserved > 0) return undefined;
    const leaveNode = this.#enter(NODE, running);
    if (!own) {
      this.#warnIfFull(NODE, running, awaited);
      return leaveNode;
    }
    const leaveLane = this.#enter(running.lane, running);
    this.#warn(running, awaited);
    this.#warnIfFull(running.lane, running, awaited);
    return () => {
      leaveLane();
      leaveNode();
    };
  }

  #enter(where: string | typeof NODE, running: Runner): () => void {
    const waiting = this.#waiting.get(where) ?? new Map<Runner, number>();
    this.#waiting.set(where, waiting);
    waiting.set(running, (waiting.get(running) ?? 0) + 1);
    return () => {
      const left = (waiting.get(running) ?? 0) - 1;
      if (left > 0) waiting.set(running, left);
      else waiting.delete(running);
    };
  }

  #slotsOf(where: string | typeof NODE): number {
    return where === NODE ? this.settings.concurrency : laneSettings(this.settings, where).concurrency;
  }

  #warn(running: Runner, awaited: AboutJob): void {
    const pair = `${running.name}\n${awaited.name}`;
    if (this.#told.has(pair)) return;
    this.#told.add(pair);
    const slots = this.#slotsOf(running.lane);
    this.logger.warn(
      `a handler of ${running.name} awaits the result of ${awaited.name} in its own lane "${running.lane}" (concurrency ${slots}): ` +
        `when all ${slots} slots wait like this, none is left to run what they wait for; ${ownLane(awaited)}`,
    );
  }

  #warnIfFull(where: string | typeof NODE, running: Runner, awaited: AboutJob): void {
    const slots = this.#slotsOf(where);
    if ((this.#waiting.get(where)?.size ?? 0) < slots) return;
    const nowMs = this.clock.monotonicMs();
    if (nowMs - (this.#fullMs.get(where) ?? Number.NEGATIVE_INFINITY) < LEAST_GAP_MS) return;
    this.#fullMs.set(where, nowMs);
    const whose = where === NODE ? 'this node' : `lane "${where}"`;
    const what = where === NODE ? 'jobs that have no slots of their own' : 'jobs of that lane';
    const mend = where === NODE ? reserve(awaited.lane) : ownLane(awaited);
    this.logger.error(
      `all ${slots} slots of ${whose} are held by handlers that await ${what} (the last: ${running.name}, which awaits ${awaited.name}): ` +
        `on this node nothing is left to run them; ${mend}, and meanwhile start a further node or cancel a waiting job`,
    );
  }
}

function ownLane({ name }: AboutJob): string {
  return `give ${name} a lane of its own, with slots: defineJob('${name}', { lane: '…' }) and lanes: { '…': { reserved: 1 } }`;
}

function reserve(lane: string): string {
  return `keep slots for them: lanes: { '${lane}': { reserved: 1 } }`;
}
