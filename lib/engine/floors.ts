import { type PriorityRank } from '../jobs/priority.js';
import { type ProbeAnswer, type StreamPlace } from '../store/job-store.js';

/** A probe that takes less found nothing pinned. */
export const FAST_PROBE_MS = 1;
/** Slow answers in a row before a floor is set. */
const SLOW_BEFORE_FLOOR = 2;
const LEAST_INTERVAL_MS = 1_000;
/** A probe may use one twentieth of the time. */
const INTERVAL_BY_DURATION = 20;

export type Places = Partial<Record<PriorityRank, StreamPlace>>;

/** Where claims start, and when that was decided: claims sent before a floor was lowered must not raise it again. */
export interface FloorsInUse {
  readonly floors: Places;
  readonly generation: number;
  /** Rows of other nodes at the place where claims start, that a claim has to read past. */
  readonly readPast?: number;
}

export interface FloorProbe {
  readonly streams: readonly { readonly priority: PriorityRank; readonly upTo: StreamPlace }[];
}

export interface FloorChange {
  readonly priority: PriorityRank;
  readonly change: 'raised' | 'lowered' | 'dropped';
  readonly place: StreamPlace | undefined;
}

interface Stream {
  /** The place of the last claim. */
  noted: StreamPlace;
  floor: StreamPlace | undefined;
  /** How far claims had come when the floor was lowered. Probes read up to there, and lead the floor back. */
  high: StreamPlace | undefined;
  slowInRow: number;
}

/**
 * Where the claims of one bucket start in each stream. Somebody's long transaction keeps dead index entries at the head of
 * the streams, and every claim would walk over them; a floor skips them. Pure: it knows no clock and no database.
 *
 * - `quiet`: no floor. After turns that claimed, a probe reads up to the last claimed place; fast means that nothing is pinned.
 * - `suspect`: one slow probe.
 * - `floored`: two slow probes. Claims start at the floor and take it along; probes go on, idle or not, and lower the floor
 *   to any row that they find behind it. Only a fast probe drops the floor: the hot path never does, because under a
 *   trickle every answer is short and dropping it would bring the long walk back at each turn.
 */
export class Floors {
  readonly #streams = new Map<PriorityRank, Stream>();
  #generation = 0;
  #claimedSinceProbe = false;
  #behind = false;
  #probing = false;
  #lastEndMs = Number.NEGATIVE_INFINITY;
  #lastTookMs = 0;

  inUse(): FloorsInUse {
    const floors: Places = {};
    for (const [priority, stream] of this.#streams)
      if (stream.floor !== undefined) floors[priority] = stream.floor;
    return { floors, generation: this.#generation };
  }

  /** A turn claimed: `last` has the last claimed place per stream, in claim order. */
  claimed(used: FloorsInUse, last: Places): void {
    for (const [priority, place] of entries(last)) {
      const stream = this.#streams.get(priority);
      this.#claimedSinceProbe = true;
      if (!stream)
        this.#streams.set(priority, { noted: place, floor: undefined, high: undefined, slowInRow: 0 });
      else {
        stream.noted = place;
        // An exchange that left before the floor was lowered has not seen the row for which it was lowered.
        if (stream.floor !== undefined && used.generation === this.#generation) stream.floor = place;
      }
    }
  }

  /** Something may have become claimable behind a floor: look at once. */
  behind(): void {
    if (this.#floored()) this.#behind = true;
  }

  /** Milliseconds until the next probe is due; `undefined` while none is needed. */
  nextProbeInMs(nowMs: number): number | undefined {
    if (this.#probing || this.#streams.size === 0) return undefined;
    const since = nowMs - this.#lastEndMs;
    // Even a probe asked for at once leaves the connection to others half of the time.
    if (this.#behind) return Math.max(0, this.#lastTookMs - since);
    if (!this.#claimedSinceProbe && !this.#floored()) return undefined;
    return Math.max(0, Math.max(LEAST_INTERVAL_MS, INTERVAL_BY_DURATION * this.#lastTookMs) - since);
  }

  /** Begins a probe; the answer goes to {@link Floors.probed}, a failure to {@link Floors.probeFailed}. */
  beginProbe(): FloorProbe {
    this.#probing = true;
    this.#claimedSinceProbe = false;
    this.#behind = false;
    return {
      streams: [...this.#streams].map(([priority, { high, noted }]) => ({ priority, upTo: high ?? noted })),
    };
  }

  probeFailed(nowMs: number): void {
    this.#probing = false;
    this.#lastEndMs = nowMs;
    this.#claimedSinceProbe = true;
  }

  probed(probe: FloorProbe, answer: ProbeAnswer, nowMs: number): readonly FloorChange[] {
    this.#probing = false;
    this.#lastEndMs = nowMs;
    this.#lastTookMs = answer.tookMs;
    const fast = answer.tookMs < FAST_PROBE_MS;
    return probe.streams.flatMap(({ priority, upTo }) => {
      const stream = this.#streams.get(priority);
      if (!stream) return [];
      return fast
        ? this.#calm(priority, stream)
        : this.#slow(priority, stream, upTo, answer.oldest[priority]);
    });
  }

  #calm(priority: PriorityRank, stream: Stream): readonly FloorChange[] {
    const stood = stream.floor !== undefined;
    stream.slowInRow = 0;
    stream.floor = undefined;
    stream.high = undefined;
    return stood ? [{ priority, change: 'dropped', place: undefined }] : [];
  }

  #slow(
    priority: PriorityRank,
    stream: Stream,
    upTo: StreamPlace,
    oldest: StreamPlace | undefined,
  ): FloorChange[] {
    stream.slowInRow += 1;
    if (stream.slowInRow < SLOW_BEFORE_FLOOR) return [];
    const before = stream.floor;
    if (oldest !== undefined) {
      stream.floor = oldest;
      stream.high ??= upTo;
      this.#generation += 1;
      return before === oldest
        ? []
        : [{ priority, change: before === undefined ? 'raised' : 'lowered', place: oldest }];
    }
    // Nothing waits up to the asked place. Claims that came in meanwhile may have taken the floor further already.
    if (before === undefined || stream.high === upTo || stream.noted === upTo) stream.floor = upTo;
    stream.high = undefined;
    return before === stream.floor ? [] : [{ priority, change: 'raised', place: stream.floor }];
  }

  #floored(): boolean {
    for (const { floor } of this.#streams.values()) if (floor !== undefined) return true;
    return false;
  }
}

/** The last claimed place per stream of one answer. */
export function lastPlaces(
  claimed: readonly { readonly priority: PriorityRank; readonly place: StreamPlace }[],
): Places {
  const last: Places = {};
  for (const { priority, place } of claimed) last[priority] = place;
  return last;
}

function entries(places: Places): [PriorityRank, StreamPlace][] {
  return Object.entries(places).map(([priority, place]) => [Number(priority) as PriorityRank, place]);
}
