/** How often a bucket looks for work that nobody told it of. Milliseconds; `burst <= min <= max <= deepIdle`. */
export interface PollSettings {
  readonly burstMs: number;
  readonly minMs: number;
  readonly maxMs: number;
  readonly deepIdleMs: number;
  readonly deepIdleAfterMs: number;
}

/**
 * What a bucket does between its looks for work.
 *
 * - `burst`: there was work, or a wakeup, a moment ago, or slots have just become free.
 * - `idle`: there was none since; the longer ago, the longer it waits.
 * - `deep_idle`: there was none for so long that it relies on wakeups; never while none can be expected.
 * - `saturated`: every slot is taken, so it does not look. That is not idleness: when one is free again it is `burst`.
 * - `held`: it may not claim, because the node leaves or its heartbeats are not acknowledged.
 */
export type PollState = 'burst' | 'idle' | 'deep_idle' | 'saturated' | 'held';

export interface Pace {
  readonly state: PollState;
  /** The longest wait for the next look; undefined while it does not look by itself. */
  readonly waitMs: number | undefined;
}

/** What the pace depends on beside time. */
export interface PollSituation {
  readonly claiming: boolean;
  readonly freeSlots: number;
  /** Other nodes' messages arrive, so that work need not be looked for. */
  readonly wakeupsExpected: boolean;
}

/** So many looks without a find before a burst is over. */
const BURST_LOOKS = 3;
/** The part of a wait that is random: nodes that were woken together do not look together for ever. */
const JITTER = 0.1;

/** The pace after `quietMs` without a sign of work. Never shorter than after a shorter quiet. */
export function paceOf(settings: PollSettings, quietMs: number, wakeupsExpected: boolean): Pace {
  const { burstMs, minMs, maxMs, deepIdleMs, deepIdleAfterMs } = settings;
  if (quietMs < BURST_LOOKS * burstMs && quietMs < deepIdleAfterMs)
    return { state: 'burst', waitMs: burstMs };
  if (quietMs >= deepIdleAfterMs && wakeupsExpected) {
    // As long again as it has been so quiet: the waits double.
    return { state: 'deep_idle', waitMs: within(maxMs, quietMs - deepIdleAfterMs, deepIdleMs) };
  }
  return { state: 'idle', waitMs: within(minMs, quietMs, maxMs) };
}

/**
 * When a bucket polls. Everything follows from two times, that of the last look and that of the last sign of work before it,
 * so there are no counters that could get out of step. Monotonic milliseconds; knows no clock and sets no timer.
 */
export class PollPace {
  readonly #settings: PollSettings;
  readonly #random: () => number;
  #lastLookMs = Number.NEGATIVE_INFINITY;
  #lastSignMs = Number.NEGATIVE_INFINITY;
  /** Since the last look. Nobody knows what was before the first one. */
  #signed = true;
  #saturated = false;
  /** Of the wait that follows the last look. */
  #share = 1;

  /** @param random - from 0 to 1. */
  constructor(settings: PollSettings, random: () => number = Math.random) {
    this.#settings = settings;
    this.#random = random;
  }

  /** There is work, or somebody says so. */
  sign(): void {
    this.#signed = true;
  }

  /** A claim was answered. */
  looked(nowMs: number, found: boolean): void {
    if (found || this.#signed) this.#lastSignMs = nowMs;
    this.#signed = false;
    this.#lastLookMs = nowMs;
    this.#share = 1 - JITTER * this.#random();
  }

  /** What it does now. Also notices that slots are taken, and free again. */
  now({ claiming, freeSlots, wakeupsExpected }: PollSituation): Pace {
    if (freeSlots === 0) {
      this.#saturated = true;
      return { state: 'saturated', waitMs: undefined };
    }
    if (this.#saturated) {
      this.#saturated = false;
      this.sign();
    }
    if (!claiming) return { state: 'held', waitMs: undefined };
    return paceOf(this.#settings, this.#quietMs(), wakeupsExpected);
  }

  /** Milliseconds until the next look; undefined while it does not look by itself. */
  nextInMs(nowMs: number, situation: PollSituation): number | undefined {
    const { waitMs } = this.now(situation);
    return waitMs === undefined ? undefined : Math.max(0, this.#lastLookMs + waitMs * this.#share - nowMs);
  }

  /** As of the last look; a sign since then ends it. */
  #quietMs(): number {
    return this.#signed ? 0 : this.#lastLookMs - this.#lastSignMs;
  }
}

function within(least: number, value: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
