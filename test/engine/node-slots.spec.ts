import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type LaneSlots, NodeSlots } from '../../lib/engine/node-slots.js';
import { type BucketSlots } from '../../lib/engine/slots.js';

/** A bucket's loop, as far as slots go: it claims what it finds, an exchange may be on its way, and it rests by saying what it wants. */
class Loop {
  jobs = 0;
  running = 0;
  adopted = 0;
  inFlight: number | undefined;
  woken = false;
  /** Slots given back, by anybody, since it waits with less than its fair share. */
  waited = 0;
  readonly slots: BucketSlots;

  constructor(
    node: NodeSlots,
    readonly lane: string,
    first = false,
  ) {
    this.slots = node.of(lane, { first, onRoom: () => (this.woken = true) });
  }

  get held(): number {
    return this.running + (this.inFlight ?? 0);
  }

  look(): void {
    this.woken = false;
    if (this.inFlight !== undefined) return;
    const want = this.jobs > 0 ? this.slots.free : 0;
    if (want > 0) this.inFlight = this.slots.reserve(want);
    else this.slots.wants(this.jobs > 0);
  }

  answer(): void {
    const reserved = this.inFlight;
    if (reserved === undefined) return;
    this.inFlight = undefined;
    const claimed = Math.min(reserved, this.jobs);
    this.jobs -= claimed;
    this.running += claimed;
    this.slots.unreserve(reserved);
    for (let n = 0; n < claimed; n += 1) this.slots.take();
    this.look();
  }

  end(): void {
    if (this.running === 0) return;
    this.running -= 1;
    this.slots.giveBack();
    this.look();
  }
}

interface Case {
  readonly capacity: number;
  readonly lanes: readonly LaneSlots[];
  /** Each the place of its lane. */
  readonly buckets: readonly { readonly lane: number; readonly first: boolean }[];
}

const cases = (mostReserved: number): fc.Arbitrary<Case> =>
  fc
    .record({ capacity: fc.integer({ min: 1, max: 12 }), count: fc.integer({ min: 1, max: 3 }) })
    .chain(({ capacity, count }) =>
      fc.record({
        capacity: fc.constant(capacity),
        lanes: fc
          .array(
            fc.record({
              concurrency: fc.integer({ min: 1, max: capacity }),
              reserved: fc.integer({ min: 0, max: mostReserved }),
            }),
            {
              minLength: count,
              maxLength: count,
            },
          )
          .map((lanes) => {
            let left = capacity;
            return lanes.map(({ concurrency, reserved }, index) => {
              const kept = Math.min(reserved, concurrency, left);
              left -= kept;
              return { lane: `lane ${index}`, concurrency, reserved: kept };
            });
          }),
        buckets: fc.array(
          fc.record({ lane: fc.integer({ min: 0, max: count - 1 }), first: fc.constant(false) }),
          {
            minLength: 1,
            maxLength: 6,
          },
        ),
      }),
    );

const steps = fc.array(
  fc.record({
    what: fc.constantFrom('jobs', 'jobs', 'answer', 'answer', 'end', 'end', 'end', 'stop'),
    bucket: fc.nat(),
    count: fc.integer({ min: 1, max: 8 }),
  }),
  { maxLength: 120 },
);

function loopsOf({ capacity, lanes, buckets }: Case): { node: NodeSlots; loops: Loop[] } {
  const node = new NodeSlots(capacity, lanes);
  return { node, loops: buckets.map(({ lane, first }) => new Loop(node, lanes[lane]!.lane, first)) };
}

/** Whoever was told looks, in an order that nobody should rely on. */
function settle(loops: readonly Loop[], seed: number): void {
  for (
    let woken = loops.filter((loop) => loop.woken);
    woken.length > 0;
    woken = loops.filter((loop) => loop.woken)
  )
    woken[seed % woken.length]!.look();
}

const at = <T>(list: readonly T[], place: number): T => list[place % list.length]!;
const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

describe('the slots of a node', () => {
  it('are never more than there are, those that are reserved are there for their lane, and nobody sleeps beside free ones', () => {
    fc.assert(
      fc.property(cases(6), steps, (setting, moves) => {
        const { node, loops } = loopsOf(setting);
        for (const { what, bucket, count } of moves) {
          const loop = at(loops, bucket);
          if (what === 'jobs') {
            loop.jobs += count;
            loop.look();
          } else if (what === 'answer') loop.answer();
          else if (what === 'end') loop.end();
          else {
            loop.jobs = 0;
            loop.look();
          }
          settle(loops, bucket);

          const used = sum(loops.map(({ held }) => held));
          expect(node.used).toBe(used);
          expect(used).toBeLessThanOrEqual(setting.capacity);
          for (const { lane, concurrency, reserved } of setting.lanes) {
            const own = loops.filter((one) => one.lane === lane);
            const usedByLane = sum(own.map(({ held }) => held));
            expect(usedByLane).toBeLessThanOrEqual(concurrency);
            // Unused ones are left alone by everybody else.
            const elsewhere = used - usedByLane;
            expect(elsewhere).toBeLessThanOrEqual(setting.capacity - reserved);
            const waits = own.some(({ jobs, inFlight }) => jobs > 0 && inFlight === undefined);
            if (waits) expect(usedByLane).toBeGreaterThanOrEqual(reserved);
          }
          // No wakeup is lost: one that could claim is claiming.
          for (const one of loops) {
            if (one.jobs > 0 && one.inFlight === undefined) expect(one.slots.free).toBe(0);
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it('go to each bucket that waits, after at most as many give-backs as there are buckets', () => {
    fc.assert(
      fc.property(cases(0), fc.array(fc.nat(), { minLength: 60, maxLength: 60 }), (setting, ends) => {
        const { loops } = loopsOf(setting);
        for (const loop of loops) {
          loop.jobs = 1_000;
          loop.look();
          loop.answer();
        }
        for (const choice of ends) {
          const runs = loops.filter(({ running }) => running > 0);
          const before = new Map(loops.map((loop) => [loop, loop.held]));
          const ended = at(runs, choice);
          ended.end();
          settle(loops, choice);
          for (const loop of loops) loop.answer();
          settle(loops, choice);
          for (const loop of loops) {
            // A lane that is full is given something when one of its own ends.
            const counts =
              loop.held === 0 && (ended.lane === loop.lane || hasRoom(setting, loops, loop.lane));
            if (loop.held > (before.get(loop) ?? 0) || loop.held > 0) loop.waited = 0;
            else if (counts) loop.waited += 1;
            expect(loop.waited).toBeLessThanOrEqual(loops.length);
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it('even out: of two lanes with endless work each has half, the one that came first lends no more', () => {
    const node = new NodeSlots(10, [
      { lane: 'a', concurrency: 10, reserved: 0 },
      { lane: 'b', concurrency: 10, reserved: 0 },
    ]);
    const [a, b] = [new Loop(node, 'a'), new Loop(node, 'b')];
    a.jobs = 1_000;
    a.look();
    a.answer();
    expect(a.running).toBe(10);
    b.jobs = 1_000;
    b.look();
    expect(b.running).toBe(0);
    for (let n = 0; n < 7; n += 1) {
      a.end();
      settle([a, b], 0);
      for (const loop of [a, b]) loop.answer();
    }
    expect([a.running, b.running]).toEqual([5, 5]);
    // b has nothing to do any more: all is lent again.
    b.jobs = 0;
    for (let n = 0; n < 5; n += 1) {
      b.end();
      settle([a, b], 0);
      for (const loop of [a, b]) loop.answer();
    }
    expect([a.running, b.running]).toEqual([10, 0]);
  });

  it('are all there for one bucket alone, less what is reserved for other lanes, and overfill by what it adopts', () => {
    const node = new NodeSlots(10, [
      { lane: 'a', concurrency: 10, reserved: 0 },
      { lane: 'b', concurrency: 4, reserved: 3 },
    ]);
    const slots = node.of('a', { onRoom: () => undefined });
    expect(slots.free).toBe(7);
    expect(slots.reserve(500)).toBe(7);
    expect(slots.free).toBe(0);
    slots.unreserve(7);
    for (let n = 0; n < 12; n += 1) slots.take();
    expect(slots.free).toBe(0);
    for (let n = 0; n < 12; n += 1) slots.giveBack();
    expect(slots.free).toBe(7);
    expect(node.of('b', { onRoom: () => undefined }).free).toBe(4);
    expect(node.of('unplanned', { onRoom: () => undefined }).free).toBe(7);
  });

  it('that one who was short leaves over are told to those who waited behind it', () => {
    const node = new NodeSlots(10, [
      { lane: 'a', concurrency: 10, reserved: 0 },
      { lane: 'b', concurrency: 2, reserved: 0 },
    ]);
    const [a, b, c] = [new Loop(node, 'a'), new Loop(node, 'b'), new Loop(node, 'a')];
    a.jobs = 5;
    a.look();
    a.answer();
    c.jobs = 1;
    c.look();
    expect(c.inFlight).toBe(5);
    for (const loop of [a, b]) {
      loop.jobs = 100;
      loop.look();
    }
    c.jobs = 0;
    c.answer();
    settle([a, b, c], 0);
    expect([a.held, b.held, c.held]).toEqual([8, 2, 0]);
  });

  it('that are reserved reach a lane that has its fair share while another is short', () => {
    const node = new NodeSlots(4, [
      { lane: 'a', concurrency: 4, reserved: 3 },
      { lane: 'b', concurrency: 4, reserved: 0 },
    ]);
    const [a, b, c] = [new Loop(node, 'a'), new Loop(node, 'b'), new Loop(node, 'b')];
    for (const loop of [b, a, c]) {
      loop.jobs = 100;
      loop.look();
      loop.answer();
    }
    expect([a.held, b.held, c.held]).toEqual([3, 1, 0]);
    a.end();
    settle([a, b, c], 0);
    expect([a.held, b.held, c.held]).toEqual([3, 1, 0]);
  });

  it('come to a first bucket before all that wait longer', () => {
    const node = new NodeSlots(1, [{ lane: 'a', concurrency: 1, reserved: 0 }]);
    const [holder, early, fallback] = [new Loop(node, 'a'), new Loop(node, 'a'), new Loop(node, 'a', true)];
    for (const loop of [holder, early, fallback]) {
      loop.jobs = 5;
      loop.look();
      loop.answer();
    }
    holder.end();
    settle([holder, early, fallback], 0);
    expect([early.inFlight, fallback.inFlight]).toEqual([undefined, 1]);
  });

  it('stay taken by bodies that outlive their bucket', () => {
    const node = new NodeSlots(3, [{ lane: 'a', concurrency: 3, reserved: 0 }]);
    const old = node.of('a', { onRoom: () => undefined });
    old.take();
    old.take();
    old.wants(false);
    let told = 0;
    const next = node.of('a', { onRoom: () => (told += 1) });
    expect(next.free).toBe(1);
    next.take();
    next.wants(true);
    expect(told).toBe(0);
    old.giveBack();
    expect([told, next.free]).toEqual([1, 1]);
  });
});

function hasRoom({ capacity, lanes }: Case, loops: readonly Loop[], name: string): boolean {
  const lane = lanes.find((one) => one.lane === name)!;
  const own = sum(loops.filter((one) => one.lane === name).map(({ held }) => held));
  return own < lane.concurrency && capacity > 0;
}
