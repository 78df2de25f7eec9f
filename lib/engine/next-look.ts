import { LookTimes } from './look-times.js';
import { type Pace, PollPace, type PollSettings, type PollSituation } from './poll-pace.js';

/** When a bucket looks for work next: when it knows of a job that is due, and when it polls at the latest. Sets no timer. */
export class NextLook {
  readonly #times = new LookTimes();
  readonly #pace: PollPace;
  #told: Pace | undefined;

  constructor(settings: PollSettings) {
    this.#pace = new PollPace(settings);
  }

  /** There is work, or somebody says so. */
  sign(): void {
    this.#pace.sign();
  }

  dueIn(nowMs: number, delayMs: number): void {
    this.#times.dueIn(nowMs, delayMs);
  }

  /** Infinity: it knows of none. */
  dueInMs(nowMs: number): number {
    return this.#times.nextInMs(nowMs);
  }

  /** A claim is about to be sent. */
  looking(): void {
    this.#times.looking();
  }

  /** The time of a look has come. */
  passed(nowMs: number): void {
    this.#times.passed(nowMs);
  }

  looked(nowMs: number, found: boolean): void {
    this.#pace.looked(nowMs, found);
  }

  /** A claim found less than it asked for: the next job is due so much later. */
  cameShort(nowMs: number, nextDueInMs: number | undefined): void {
    this.#times.cameShort(nowMs, nextDueInMs);
  }

  /** Undefined: it does not look by itself. */
  inMs(nowMs: number, situation: PollSituation): number | undefined {
    const pollInMs = this.#pace.nextInMs(nowMs, situation);
    return pollInMs === undefined ? undefined : Math.min(pollInMs, this.#times.nextInMs(nowMs));
  }

  pace(situation: PollSituation): Pace {
    return this.#pace.now(situation);
  }

  /** The pace, when it is not what was told last. */
  news(situation: PollSituation): Pace | undefined {
    const { state, waitMs } = this.#pace.now(situation);
    if (this.#told?.state === state && this.#told.waitMs === waitMs) return undefined;
    this.#told = { state, waitMs };
    return this.#told;
  }
}
