import { ZoneOffsets } from './zone-offsets.js';

/** A stretch of time in which the clocks of a zone run on without a jump. Seconds since 1970-01-01, UTC. */
export interface ZoneSpan {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
  /** Seconds east of UTC. */
  readonly offset: number;
  /** The offset just before `start`: less than `offset` where clocks were put forward, equal where nothing happened. */
  readonly before: number;
}

const HOUR = 3_600;
/** No zone is further from UTC: local times of the sun reach 15 h 13 min. */
const FARTHEST = 16 * HOUR;
/** No clock was ever put back by more: a day, where the date line moved. */
const LONGEST_OVERLAP = 26 * HOUR;
/** Less than the time between any two changes of one zone; the least since 1970 is just under a week (Brazil, October 2000). */
const STEP = 4 * 24 * HOUR;
/** Learnt at a time: a yearly schedule should not pay for whole years. */
const CHUNK = 7 * STEP;
const KEPT_CHUNKS = 1_024;
const KEPT_ZONES = 1_000;

const zones = new Map<string, TimeZone>();

/**
 * The clock changes of a zone, learnt from Intl once and kept: between two changes, arithmetic is all that is needed.
 * Exact to the second.
 */
export class TimeZone {
  private readonly offsets: ZoneOffsets;
  private readonly chunks = new Map<number, readonly ZoneSpan[]>();
  private last: ZoneSpan | undefined;

  private constructor(name: string) {
    this.offsets = new ZoneOffsets(name);
  }

  /** @throws RangeError - Intl knows no such zone; `zoneName` finds that out before, with a better text. */
  static named(name: string): TimeZone {
    let zone = zones.get(name);
    if (!zone) {
      if (zones.size >= KEPT_ZONES) zones.clear();
      zone = new TimeZone(name);
      zones.set(name, zone);
    }
    return zone;
  }

  /** The span that an instant is in. It may begin or end where nothing happens. */
  spanAt(second: number): ZoneSpan {
    if (this.last && second >= this.last.start && second < this.last.end) return this.last;
    const number = Math.floor(second / CHUNK);
    let chunk = this.chunks.get(number);
    if (!chunk) {
      if (this.chunks.size >= KEPT_CHUNKS) this.chunks.clear();
      chunk = this.learn(number * CHUNK);
      this.chunks.set(number, chunk);
    }
    const span = chunk.find(({ end }) => second < end) ?? lastOf(chunk);
    this.last = span;
    return span;
  }

  /** The latest wall time that the clocks have shown by then: while a repeated hour lasts, its end. */
  reached(second: number): number {
    let span = this.spanAt(second);
    let reached = second + span.offset;
    while (span.start > second - LONGEST_OVERLAP) {
      reached = Math.max(reached, span.start - 1 + span.before);
      span = this.spanAt(span.start - 1);
    }
    return reached;
  }

  /** The first instant at which the clocks show this wall time, or, when they jump over it, have passed it. */
  firstReaching(wall: number): number {
    let span = this.spanAt(wall - FARTHEST);
    while (wall - span.offset >= span.end) span = this.spanAt(span.end);
    return Math.max(span.start, wall - span.offset);
  }

  private learn(start: number): readonly ZoneSpan[] {
    const spans: ZoneSpan[] = [];
    let offset = this.offsets.at(start);
    let open = { start, offset, before: this.offsets.at(start - 1) };
    for (let from = start; from < start + CHUNK; from += STEP) {
      // The last second of the chunk, not the first of the next, which may be a change of its own.
      const to = Math.min(from + STEP, start + CHUNK - 1);
      const later = this.offsets.at(to);
      if (later === offset) continue;
      const change = this.changeBetween(from, to, offset);
      spans.push({ ...open, end: change });
      open = { start: change, offset: later, before: offset };
      offset = later;
    }
    spans.push({ ...open, end: start + CHUNK });
    return spans;
  }

  /** The first second with another offset; one change at most is between the two. */
  private changeBetween(before: number, after: number, offset: number): number {
    let [same, other] = [before, after];
    while (other - same > 1) {
      const middle = Math.floor((same + other) / 2);
      if (this.offsets.at(middle) === offset) same = middle;
      else other = middle;
    }
    return other;
  }
}

function lastOf(chunk: readonly ZoneSpan[]): ZoneSpan {
  const span = chunk.at(-1);
  if (!span) throw new Error('a chunk has at least one span');
  return span;
}
