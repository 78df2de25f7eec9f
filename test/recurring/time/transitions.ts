import { wallClock } from './slow-oracle.js';

const MINUTE = 60_000;
const STEP = 6 * 60 * MINUTE;

export interface Transition {
  /** The first instant of the new offset. */
  readonly at: number;
  /** Milliseconds by which clocks were put forward; negative: back. */
  readonly shift: number;
}

/** All clock changes of a zone in some years, found by looking every six hours, then minute by minute. */
export function transitionsOf(zone: string, fromYear: number, untilYear: number): Transition[] {
  const offset = (instant: number) => wallClock(zone, instant) - instant;
  const found: Transition[] = [];
  let before = offset(Date.UTC(fromYear, 0));
  for (let seen = Date.UTC(fromYear, 0); seen < Date.UTC(untilYear, 0); seen += STEP) {
    const after = offset(seen + STEP);
    if (after === before) continue;
    let at = seen + MINUTE;
    while (offset(at) === before) at += MINUTE;
    found.push({ at, shift: after - before });
    before = after;
  }
  return found;
}

export interface History {
  readonly zone: string;
  readonly transitions: readonly Transition[];
}

/** One zone for each history of offsets: most zones of a continent share theirs. */
export function distinctHistories(zones: readonly string[], fromYear: number, untilYear: number): History[] {
  const histories = new Map<string, History>();
  for (const zone of zones) {
    const transitions = transitionsOf(zone, fromYear, untilYear);
    const start = Date.UTC(fromYear, 0);
    const key = JSON.stringify([wallClock(zone, start) - start, transitions]);
    if (!histories.has(key)) histories.set(key, { zone, transitions });
  }
  return [...histories.values()];
}
