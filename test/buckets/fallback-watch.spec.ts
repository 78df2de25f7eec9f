import { beforeEach, describe, expect, it } from '@jest/globals';
import { type Bucket } from '../../lib/buckets/bucket.js';
import { type FallbackHost, FallbackWatch } from '../../lib/buckets/fallback-watch.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type FallbackNeed, type StarvingStream } from '../../lib/store/job-store.js';
import { FakeClock } from '../support/fake-clock.js';

const NODE = { id: 'a', epoch: '1' };

class Host implements FallbackHost {
  buckets: Bucket[] = [];
  readonly retired: Bucket[] = [];
  readonly working = new Set<Bucket>();

  get known(): readonly string[] {
    return [...this.buckets, ...this.retired].map(({ ref }) => ref.id);
  }

  busy(bucket: Bucket): boolean {
    return this.working.has(bucket);
  }

  open(bucket: Bucket): void {
    this.buckets.push(bucket);
  }

  retire(bucket: Bucket): void {
    this.buckets = this.buckets.filter((one) => one !== bucket);
    this.retired.push(bucket);
  }
}

describe('FallbackWatch', () => {
  let clock: FakeClock;
  let host: Host;
  let streams: StarvingStream[];
  let served: string[];
  let need: FallbackNeed;
  let asked: string[];
  let lines: string[];
  let faults: unknown[];
  let fault: Error | undefined;
  let faulty: Set<string>;
  let known: (readonly string[])[];
  let taken: boolean;
  let events: EngineEvents;
  let watch: FallbackWatch;

  const stream = (lane: string, overrides: Partial<StarvingStream> = {}): StarvingStream => ({
    lane,
    priority: 2,
    due: 3,
    oldestMs: 151_000,
    names: ['mail.send'],
    ...overrides,
  });
  const looked = async (ms: number): Promise<void> => {
    const done = events.next('fallback_looked');
    clock.advance(ms);
    await done;
    // The timer of the next look.
    await new Promise(setImmediate);
  };

  beforeEach(() => {
    clock = new FakeClock();
    host = new Host();
    [streams, served, need, asked, lines, faults] = [[], ['default', 'mail'], 'starving', [], [], []];
    fault = undefined;
    [faulty, known] = [new Set(), []];
    taken = false;
    events = new EngineEvents();
    watch = new FallbackWatch({
      store: {
        starving: ({ afterMs, known: ids }) => {
          known.push(ids);
          expect(afterMs).toBe(150_000);
          asked.push('starving');
          return fault ? Promise.reject(fault) : Promise.resolve({ streams, served });
        },
        openFallback: ({ node, lane }) => {
          asked.push(`open ${lane}`);
          if (faulty.has(lane)) return Promise.reject(new Error(`open ${lane}`));
          return Promise.resolve(taken ? undefined : { id: lane, epoch: 1, lane, kind: 'fallback', node });
        },
        fallbackNeeded: ({ bucket: { lane } }) =>
          faulty.has(lane) ? Promise.reject(new Error(`judge ${lane}`)) : Promise.resolve(need),
        setBucketStatus: () => Promise.resolve(true),
      },
      clock,
      events,
      host,
      handlers: [{ name: 'mail.send', version: 1 }],
      afterMs: 150_000,
      logger: { log: (line) => lines.push(line), warn: (line) => lines.push(line) },
      onFault: (error) => faults.push(error),
    });
    watch.attend(NODE);
  });

  it('looks every 30 s or so, and opens a bucket for a lane that starves in two looks in a row', async () => {
    clock.advance(23_000);
    expect(asked).toEqual([]);
    streams = [stream('mial')];
    await looked(14_000);
    expect(asked).toEqual(['starving']);
    streams = [];
    await looked(37_000);
    streams = [stream('mial')];
    await looked(37_000);
    expect(host.buckets).toEqual([]);
    await looked(37_000);
    expect(host.buckets.map(({ ref }) => ref)).toEqual([
      { id: 'mial', epoch: 1, lane: 'mial', kind: 'fallback', node: NODE },
    ]);
    expect(lines).toEqual([
      'no live node serves lane "mial": 3 due jobs of priority normal, the oldest for 151 s (mail.send); a fallback bucket of this node ' +
        'runs them until one does; add it to lanes, or fix the name where they are enqueued; nearest: mail',
    ]);
  });

  it('says what many are, of a lane that is served but for a priority', async () => {
    streams = [
      stream('mail', { priority: 1, due: 1_000, names: ['b', 'a'] }),
      stream('mail', { priority: 0, due: 1 }),
    ];
    await looked(37_000);
    await looked(37_000);
    expect(lines).toEqual([
      'no live node serves priority lowest, low of lane "mail": 1000 or more due jobs of priority low, the oldest for 151 s (a, b); ' +
        '1 due job of priority lowest, the oldest for 151 s (mail.send); a fallback bucket of this node runs them until one does; ' +
        'give lanes.mail.buckets.lowest, lanes.mail.buckets.low a bucket on some node, or cancel them',
    ]);
  });

  it('says nothing when another node has it', async () => {
    taken = true;
    streams = [stream('mial')];
    await looked(37_000);
    await looked(37_000);
    expect(asked).toContain('open mial');
    expect([host.buckets, lines]).toEqual([[], []]);
  });

  it('ends one at once when others serve the lane, and one without work after three looks in a row', async () => {
    streams = [stream('one')];
    await looked(37_000);
    await looked(37_000);
    streams = [];
    need = 'idle';
    await looked(37_000);
    await looked(37_000);
    need = 'starving';
    await looked(37_000);
    need = 'idle';
    await looked(37_000);
    await looked(37_000);
    expect(host.retired).toEqual([]);
    await looked(37_000);
    expect(host.retired.map(({ ref }) => ref.lane)).toEqual(['one']);
    streams = [stream('two')];
    await looked(37_000);
    await looked(37_000);
    streams = [];
    need = 'served';
    await looked(37_000);
    expect(host.retired.map(({ ref }) => ref.lane)).toEqual(['one', 'two']);
    expect(lines.at(-1)).toBe(
      'lane "two": a live node serves it again: its fallback bucket on this node ends',
    );
  });

  it('does not end one for want of work while executions are in it', async () => {
    streams = [stream('one')];
    await looked(37_000);
    await looked(37_000);
    streams = [];
    need = 'idle';
    host.working.add(host.buckets[0]!);
    for (let look = 0; look < 5; look += 1) await looked(37_000);
    expect(host.retired).toEqual([]);
    host.working.clear();
    for (let look = 0; look < 3; look += 1) await looked(37_000);
    expect(host.retired).toHaveLength(1);
  });

  it('knows those that only finish: their lane is not given them again', async () => {
    streams = [stream('one')];
    await looked(37_000);
    await looked(37_000);
    need = 'served';
    await looked(37_000);
    expect(host.retired).toHaveLength(1);
    expect(known.at(-1)).toEqual(['one']);
  });

  it('one that cannot be looked at, or opened, does not keep it from the others', async () => {
    faulty.add('bad');
    streams = [stream('bad'), stream('one'), stream('two')];
    await looked(37_000);
    await looked(37_000);
    expect(host.buckets.map(({ ref }) => ref.lane)).toEqual(['one', 'two']);
    faulty.add('one');
    streams = [];
    need = 'served';
    await looked(37_000);
    expect(host.retired.map(({ ref }) => ref.lane)).toEqual(['two']);
    expect(faults.map(String)).toEqual(['Error: open bad', 'Error: judge one']);
  });

  it('survives a fault, and looks no more when it is stopped', async () => {
    fault = new Error('away');
    clock.advance(37_000);
    await watch.runOnce();
    expect(faults).toEqual([fault]);
    fault = undefined;
    await new Promise(setImmediate);
    await looked(37_000);
    await watch.stop();
    expect(clock.pending).toBe(0);
    expect(asked).toHaveLength(2);
  });
});
