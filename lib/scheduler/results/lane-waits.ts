import { type JobContext } from '../../jobs/job-context.js';
import { type LineLogger } from '../../engine/line-logger.js';

/** What is known of an awaited job without asking. */
export interface AboutJob {
  readonly name: string;
  readonly lane: string;
}

type Runner = Pick<JobContext, 'name' | 'lane'>;

/** Between two lines that a lane is full of waiting handlers. */
const LEAST_GAP_MS = 60_000;

/**
 * Handlers that await jobs of their own lane. Each holds a slot while it waits; when all slots are held so, none is left to
 * run what they wait for. Says so: once for each pair of names, before it happens, and louder while it is the case.
 */
export class LaneWaits {
  /** Executions that wait, by lane, with how many results each awaits. */
  readonly #waiting = new Map<string, Map<Runner, number>>();
  readonly #told = new Set<string>();
  readonly #fullMs = new Map<string, number>();

  /** @param concurrencyOf - slots that this process has in a lane. */
  constructor(
    private readonly concurrencyOf: (lane: string) => number,
    private readonly clock: { monotonicMs(): number },
    private readonly logger: LineLogger,
  ) {}

  /** `running` awaits `awaited` from now on; returns the function to call when it does no more. */
  enter(running: Runner, awaited: AboutJob | undefined): (() => void) | undefined {
    const { lane } = running;
    if (awaited?.lane !== lane) return undefined;
    const slots = this.concurrencyOf(lane);
    this.#warn(running, awaited, slots);
    const waiting = this.#waiting.get(lane) ?? new Map<Runner, number>();
    this.#waiting.set(lane, waiting);
    waiting.set(running, (waiting.get(running) ?? 0) + 1);
    if (waiting.size >= slots) this.#full(running, awaited, slots);
    return () => this.#leave(waiting, running);
  }

  #leave(waiting: Map<Runner, number>, running: Runner): void {
    const left = (waiting.get(running) ?? 0) - 1;
    if (left > 0) waiting.set(running, left);
    else waiting.delete(running);
  }

  #warn(running: Runner, awaited: AboutJob, slots: number): void {
    const pair = `${running.name}\n${awaited.name}`;
    if (this.#told.has(pair)) return;
    this.#told.add(pair);
    this.logger.warn(
      `a handler of ${running.name} awaits the result of ${awaited.name} in its own lane "${running.lane}" (concurrency ${slots}): ` +
        `when all ${slots} slots wait like this, none is left to run what they wait for; ${mend(awaited)}`,
    );
  }

  #full(running: Runner, awaited: AboutJob, slots: number): void {
    const nowMs = this.clock.monotonicMs();
    if (nowMs - (this.#fullMs.get(running.lane) ?? Number.NEGATIVE_INFINITY) < LEAST_GAP_MS) return;
    this.#fullMs.set(running.lane, nowMs);
    this.logger.error(
      `all ${slots} slots of lane "${running.lane}" are held by handlers that await jobs of that lane (the last: ${running.name}, which ` +
        `awaits ${awaited.name}): on this node nothing is left to run them; ${mend(awaited)}, and meanwhile start a further node or cancel a waiting job`,
    );
  }
}

function mend({ name }: AboutJob): string {
  return `give ${name} a lane of its own: defineJob('${name}', { lane: '…' })`;
}
