import { afterEach, describe, expect, it } from '@jest/globals';
import { type CoordinatorMessage } from '../../../lib/cluster/coordinators/coordinator-message.js';
import { Publisher } from '../../../lib/cluster/coordinators/publisher.js';
import { FakeClock, settled } from '../../support/fake-clock.js';

const wakeup = (lane: string): CoordinatorMessage => ({ kind: 'wakeup', lane, priority: 2, source: 'me' });

class Bench {
  readonly clock = new FakeClock();
  readonly sent: string[][] = [];
  readonly faults: unknown[] = [];
  mended = 0;
  answer: () => Promise<void> = () => Promise.resolve();
  readonly publisher = new Publisher({
    clock: this.clock,
    intervalMs: 20,
    send: (messages) => {
      this.sent.push(messages.map((message) => ('lane' in message ? message.lane : message.jobId)));
      return this.answer();
    },
    onFault: (error) => this.faults.push(error),
    onMended: () => (this.mended += 1),
  });

  add(...lanes: string[]): Promise<void> {
    for (const lane of lanes) this.publisher.add(wakeup(lane));
    return settled();
  }

  /** Step by step: a timer that rings sets the next one only after its promises. */
  async pass(ms: number): Promise<void> {
    const step = Math.max(1, ms / 200);
    for (let left = ms; left >= 0; left -= step) {
      this.clock.advance(Math.min(step, left));
      await settled();
    }
  }
}

describe('Publisher', () => {
  let bench = new Bench();
  afterEach(() => {
    bench = new Bench();
  });

  it('sends the first at the end of the tick, with all that the tick asked for', async () => {
    await bench.add('a', 'b', 'a');
    expect(bench.sent).toEqual([['b', 'a']]);
  });

  it('sends at most once in 20 ms, and nothing is left behind', async () => {
    await bench.add('a');
    await bench.add('b');
    await bench.pass(19);
    await bench.add('c');
    expect(bench.sent).toEqual([['a']]);
    await bench.pass(1);
    expect(bench.sent).toEqual([['a'], ['b', 'c']]);
    await bench.pass(60_000);
    expect(bench.sent).toHaveLength(2);
    await bench.add('d');
    expect(bench.sent).toHaveLength(3);
  });

  it('never sends two at a time', async () => {
    let done = (): void => {};
    bench.answer = () => new Promise((resolve) => (done = resolve));
    await bench.add('a');
    await bench.add('b');
    await bench.pass(1_000);
    expect(bench.sent).toEqual([['a']]);
    done();
    await settled();
    await bench.pass(0);
    expect(bench.sent).toEqual([['a'], ['b']]);
  });

  it('after a failure waits ever longer, keeps what was not told, and says it once', async () => {
    bench.answer = () => Promise.reject(new Error('away'));
    await bench.add('a');
    await bench.add('b');
    await bench.pass(99);
    expect(bench.sent).toHaveLength(1);
    await bench.pass(101);
    expect(bench.sent).toEqual([['a'], ['a', 'b']]);
    await bench.pass(120_000);
    const attempts = bench.sent.length;
    expect(attempts).toBeLessThan(40);
    expect(attempts).toBeGreaterThan(10);
    expect(bench.faults).toHaveLength(1);
    bench.answer = () => Promise.resolve();
    await bench.pass(10_000);
    expect(bench.sent.at(-1)).toEqual(['a', 'b']);
    expect(bench.mended).toBe(1);
    const total = bench.sent.length;
    await bench.pass(120_000);
    expect(bench.sent).toHaveLength(total);
  });

  it('sends what is pending once more at the close, and nothing afterwards', async () => {
    await bench.add('a');
    await bench.add('b');
    await bench.publisher.close();
    await bench.publisher.close();
    await bench.add('c');
    await bench.pass(60_000);
    expect(bench.sent).toEqual([['a'], ['b']]);
    expect(bench.clock.pending).toBe(0);
  });

  it('closes while the transport is away', async () => {
    bench.answer = () => Promise.reject(new Error('away'));
    await bench.add('a');
    await bench.publisher.close();
    expect(bench.clock.pending).toBe(0);
  });

  it('survives a send that throws', async () => {
    bench.answer = () => {
      throw new Error('broken');
    };
    await bench.add('a');
    expect(bench.faults).toHaveLength(1);
    await bench.publisher.close();
  });
});
