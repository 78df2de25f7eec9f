import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { FAST_PROBE_MS, Floors, type FloorProbe, type FloorsInUse } from '../../lib/engine/floors.js';

const SLOW = FAST_PROBE_MS * 5;
const P = 2;
const place = (n: number): string => String(n).padStart(8, '0');

/** A floor after two slow probes at the last claimed place. */
function floored(at: number): Floors {
  const floors = new Floors();
  floors.claimed(floors.inUse(), { [P]: place(at) });
  for (let round = 0; round < 2; round += 1)
    floors.probed(floors.beginProbe(), { oldest: {}, tookMs: SLOW }, round);
  return floors;
}

describe('Floors', () => {
  it('uses none while probes are fast, nor after one slow probe', () => {
    const floors = new Floors();
    floors.claimed(floors.inUse(), { [P]: place(5) });
    floors.probed(floors.beginProbe(), { oldest: {}, tookMs: 0.4 }, 0);
    floors.probed(floors.beginProbe(), { oldest: {}, tookMs: SLOW }, 0);
    expect(floors.inUse().floors).toEqual({});
    floors.probed(floors.beginProbe(), { oldest: {}, tookMs: 0.4 }, 0);
    floors.probed(floors.beginProbe(), { oldest: {}, tookMs: SLOW }, 0);
    expect(floors.inUse().floors).toEqual({});
  });

  it('sets it after two slow ones: at the noted place, or at the row that stands before it', () => {
    expect(floored(5).inUse().floors).toEqual({ [P]: place(5) });
    const behind = new Floors();
    behind.claimed(behind.inUse(), { [P]: place(5) });
    for (let round = 0; round < 2; round += 1) {
      behind.probed(behind.beginProbe(), { oldest: { [P]: place(3) }, tookMs: SLOW }, 0);
    }
    expect(behind.inUse().floors).toEqual({ [P]: place(3) });
  });

  it('goes along with the claims, and only a fast probe drops it', () => {
    const floors = floored(5);
    floors.claimed(floors.inUse(), { [P]: place(9) });
    expect(floors.inUse().floors).toEqual({ [P]: place(9) });
    expect(floors.probed(floors.beginProbe(), { oldest: {}, tookMs: 0.2 }, 0)).toEqual([
      { priority: P, change: 'dropped', place: undefined },
    ]);
    expect(floors.inUse().floors).toEqual({});
  });

  it('a claim that was in flight when the floor was lowered does not raise it over the row that was found', () => {
    const floors = floored(5);
    const inFlight = floors.inUse();
    floors.probed(floors.beginProbe(), { oldest: { [P]: place(2) }, tookMs: SLOW }, 0);
    floors.claimed(inFlight, { [P]: place(9) });
    expect(floors.inUse().floors).toEqual({ [P]: place(2) });
  });

  it('comes back to where claims had been, once nothing waits behind it', () => {
    const floors = floored(5);
    floors.probed(floors.beginProbe(), { oldest: { [P]: place(2) }, tookMs: SLOW }, 0);
    floors.claimed(floors.inUse(), { [P]: place(2) });
    const probe = floors.beginProbe();
    expect(probe.streams).toEqual([{ priority: P, upTo: place(5) }]);
    floors.probed(probe, { oldest: {}, tookMs: SLOW }, 0);
    expect(floors.inUse().floors).toEqual({ [P]: place(5) });
  });

  it('probes after turns that claimed, at most once a second or twenty times its duration, and never when idle', () => {
    const floors = new Floors();
    expect(floors.nextProbeInMs(0)).toBeUndefined();
    floors.claimed(floors.inUse(), { [P]: place(1) });
    expect(floors.nextProbeInMs(0)).toBe(0);
    floors.probed(floors.beginProbe(), { oldest: {}, tookMs: 0.2 }, 100);
    expect(floors.nextProbeInMs(200)).toBeUndefined();
    floors.claimed(floors.inUse(), { [P]: place(2) });
    expect(floors.nextProbeInMs(200)).toBe(900);
    floors.probed(floors.beginProbe(), { oldest: {}, tookMs: 100 }, 1_100);
    floors.claimed(floors.inUse(), { [P]: place(3) });
    expect(floors.nextProbeInMs(1_100)).toBe(2_000);
  });

  it('probes on while a floor stands, at once after something came behind, and again when that came during a probe', () => {
    const floors = floored(5);
    expect(floors.nextProbeInMs(1)).toBe(1_000);
    floors.behind();
    expect(floors.nextProbeInMs(10)).toBe(0);
    const probe = floors.beginProbe();
    expect(floors.nextProbeInMs(10)).toBeUndefined();
    floors.behind();
    floors.probed(probe, { oldest: {}, tookMs: SLOW }, 20);
    expect(floors.nextProbeInMs(30)).toBe(0);
  });

  /**
   * A model of one stream: rows at places, some claimed, some appearing behind; exchanges and probes that overlap in every
   * order. Whatever happened: two undisturbed probes and claims later, no row is left.
   */
  it('never hides a row for longer than a probe', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('insert' as const), at: fc.integer({ min: 0, max: 60 }) }),
      fc.constantFrom(
        { kind: 'send' as const },
        { kind: 'answer' as const },
        { kind: 'probe' as const },
        { kind: 'hear-slow' as const },
        { kind: 'hear-fast' as const },
      ),
    );
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 120 }),
        fc.uniqueArray(fc.nat({ max: 60 })),
        (steps, latecomers) => {
          const floors = new Floors();
          const rows = new Set<number>();
          let exchange: { used: FloorsInUse; taken: number[] } | undefined;
          let probe: { asked: FloorProbe; oldest: number | undefined } | undefined;
          const claim = (used: FloorsInUse): number[] => {
            const from = used.floors[P] ?? '';
            const taken = [...rows]
              .filter((row) => place(row) >= from)
              .sort((a, b) => a - b)
              .slice(0, 3);
            for (const row of taken) rows.delete(row);
            return taken;
          };
          const answer = (): void => {
            const last = exchange?.taken.at(-1);
            if (exchange && last !== undefined) floors.claimed(exchange.used, { [P]: place(last) });
            exchange = undefined;
          };
          const ask = (): void => {
            const asked = floors.beginProbe();
            const upTo = asked.streams[0]?.upTo;
            const found = upTo === undefined ? [] : [...rows].filter((row) => place(row) <= upTo);
            probe = { asked, oldest: found.length > 0 ? Math.min(...found) : undefined };
          };
          const hear = (tookMs: number): void => {
            if (!probe) return;
            const oldest = probe.oldest === undefined ? {} : { [P]: place(probe.oldest) };
            floors.probed(probe.asked, { oldest, tookMs }, 0);
            probe = undefined;
          };
          for (const next of steps) {
            if (next.kind === 'insert') rows.add(next.at);
            if (next.kind === 'send' && !exchange) {
              const used = floors.inUse();
              exchange = { used, taken: claim(used) };
            }
            if (next.kind === 'answer') answer();
            if (next.kind === 'probe' && !probe) ask();
            if (next.kind === 'hear-slow') hear(SLOW);
            if (next.kind === 'hear-fast') hear(0.1);
          }
          answer();
          hear(SLOW);
          // From now on the stream never rests: each probe is heard while an exchange with the older floors is in flight.
          const hidden = new Set(rows);
          const allTaken = (): boolean => [...hidden].every((row) => !rows.has(row));
          for (let round = 0; round < 150 && (round < 12 || !allTaken()); round += 1) {
            // The floor stands by now; these come in behind it.
            if (round === 10) for (const at of latecomers) for (const set of [rows, hidden]) set.add(at);
            rows.add(100 + round);
            const used = floors.inUse();
            exchange = { used, taken: claim(used) };
            ask();
            hear(SLOW);
            answer();
          }
          expect(allTaken()).toBe(true);
        },
      ),
      { numRuns: 300 },
    );
  });
});
