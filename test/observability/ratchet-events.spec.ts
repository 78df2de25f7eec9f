import { AsyncLocalStorage } from 'node:async_hooks';
import { beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { BRIDGES } from '../../lib/observability/ratchet-event-bridge.js';
import { type JobCanceledEvent, type RatchetEventName } from '../../lib/observability/ratchet-event-map.js';
import { RatchetEvents } from '../../lib/observability/ratchet-events.js';

const EXECUTION = { jobId: 'j', name: 'work', lane: 'default', node: 'n', claimSeq: '3', execution: 2 };
const SETTLED = { ...EXECUTION, bucket: 'b', failures: 1, crashes: 2, durationMs: 50 };
const ALL = Object.keys(BRIDGES) as RatchetEventName[];

describe('RatchetEvents', () => {
  let engine: EngineEvents;
  let events: RatchetEvents;
  let failed: [string, unknown][];

  beforeEach(() => {
    engine = new EngineEvents(() => {
      throw new Error('no listener of the engine may fail');
    });
    failed = [];
    events = new RatchetEvents(engine, (event, error) => void failed.push([event, error]));
  });

  const cancel = (jobId = 'j'): void => engine.emit('withdrawn', { jobId, running: false });

  it('makes of each thing that the engine tells the event that it is', () => {
    const heard: [string, unknown][] = [];
    for (const name of ALL) events.on(name, (event) => heard.push([name, event]));
    engine.emit('enqueued', { jobId: 'j', name: 'work', lane: 'default', priority: 'high' });
    engine.emit('claimed', { ...EXECUTION, bucket: 'b', waitedMs: 7 });
    engine.emit('settled', { ...SETTLED, outcome: 'succeeded' });
    engine.emit('settled', { ...SETTLED, outcome: 'retried', error: 'Error: x', delayMs: 10 });
    engine.emit('settled', { ...SETTLED, outcome: 'failed', error: 'Error: x' });
    engine.emit('settled', { ...SETTLED, outcome: 'snoozed', delayMs: 10 });
    engine.emit('settled', { ...SETTLED, outcome: 'released', durationMs: undefined });
    engine.emit('settled', { ...SETTLED, outcome: 'released' });
    engine.emit('settled', { ...SETTLED, outcome: 'released', durationMs: undefined, begun: false });
    engine.emit('lost', { ...EXECUTION, bucket: 'b', reason: 'claim' });
    cancel();
    const failure = { error: 'Error: x', failures: 1, durationMs: 50 };
    expect(heard).toEqual([
      ['job.enqueued', { jobId: 'j', name: 'work', lane: 'default', priority: 'high' }],
      ['job.started', { ...EXECUTION, waitedMs: 7 }],
      ['job.succeeded', { ...EXECUTION, durationMs: 50 }],
      ['job.retrying', { ...EXECUTION, ...failure, delayMs: 10 }],
      ['job.failed', { ...EXECUTION, ...failure, crashes: 2 }],
      ['job.snoozed', { ...EXECUTION, delayMs: 10, durationMs: 50 }],
      ['job.released', { ...EXECUTION, reason: 'shutdown' }],
      ['job.released', { ...EXECUTION, reason: 'unrecordable' }],
      ['job.released', { ...EXECUTION, reason: 'unbegun' }],
      ['job.lost', { ...EXECUTION, reason: 'claim' }],
      ['job.canceled', { jobId: 'j', running: false }],
    ]);
  });

  it('logs what a listener throws or rejects, under the name of the event, and calls the others', async () => {
    const heard: string[] = [];
    events.on('job.canceled', () => {
      throw 'boom';
    });
    events.on('job.canceled', async () => {
      throw new Error('later');
    });
    events.on('job.canceled', () => ({
      get then() {
        throw new Error('a hostile promise');
      },
    }));
    events.on('job.canceled', ({ jobId }) => heard.push(jobId));
    cancel();
    expect(heard).toEqual(['j']);
    await new Promise(setImmediate);
    expect(failed).toEqual([
      ['job.canceled', 'boom'],
      ['job.canceled', expect.objectContaining({ message: 'later' })],
      ['job.canceled', expect.objectContaining({ message: 'a hostile promise' })],
    ]);
  });

  it('survives a logger that throws', async () => {
    const heard: string[] = [];
    const broken = new RatchetEvents(engine, () => {
      throw new Error('the logger');
    });
    broken.on('job.canceled', () => Promise.reject(new Error('x')));
    broken.on('job.canceled', () => {
      throw new Error('x');
    });
    broken.on('job.canceled', ({ jobId }) => heard.push(jobId));
    cancel();
    await new Promise(setImmediate);
    expect(heard).toEqual(['j']);
  });

  it('waits for no listener', () => {
    const heard: string[] = [];
    events.on('job.canceled', () => new Promise(() => {}));
    events.on('job.canceled', ({ jobId }) => heard.push(jobId));
    cancel('a');
    cancel('b');
    expect(heard).toEqual(['a', 'b']);
  });

  it("runs listeners in nobody's async context", () => {
    const request = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    events.on('job.canceled', () => seen.push(request.getStore()));
    request.run('of a request', () => cancel());
    expect(seen).toEqual([undefined]);
  });

  it('gives listeners one event that none of them can change', () => {
    events.on('job.canceled', (event) => {
      (event as { jobId: string }).jobId = 'another';
    });
    const heard: JobCanceledEvent[] = [];
    events.on('job.canceled', (event) => heard.push(event));
    cancel();
    expect(heard).toEqual([{ jobId: 'j', running: false }]);
    expect(failed).toHaveLength(1);
  });

  it('has the engine make nothing while nobody listens', () => {
    const sources = ['enqueued', 'withdrawn', 'claimed', 'settled', 'lost'] as const;
    const heard = (): string[] => sources.filter((source) => engine.heard(source));
    const offs = ALL.map((name) => events.on(name, () => {}));
    expect(heard()).toEqual(sources);
    for (const off of offs) off();
    expect(heard()).toEqual([]);
    events.on('job.started', () => {});
    expect(heard()).toEqual(['claimed']);
  });

  it('refuses an event that there is not, and names the one that was meant', () => {
    const on = events.on.bind(events) as (name: unknown, listener: unknown) => unknown;
    const refused = (name: unknown): unknown =>
      expect.objectContaining({ code: 'UNKNOWN_EVENT', message: expect.stringContaining(String(name)) });
    expect(() => on('job.succeded', () => {})).toThrow(refused("did you mean 'job.succeeded'?"));
    expect(() => on('toString', () => {})).toThrow(refused('there are job.enqueued, '));
    for (const name of [undefined, null, 7, {}, Symbol('job.failed'), Object.create(null), '']) {
      expect(() => on(name, () => {})).toThrow(refused('UNKNOWN_EVENT'));
    }
  });

  it('refuses a listener that cannot be called', () => {
    const on = events.on.bind(events) as (name: unknown, listener: unknown) => unknown;
    for (const listener of [undefined, null, {}, 'log']) {
      expect(() => on('job.failed', listener)).toThrow(
        expect.objectContaining({ code: 'INVALID_LISTENER', message: expect.stringContaining('job.failed') }),
      );
    }
    expect(engine.heard('settled')).toBe(false);
  });

  it('tells exactly those that are registered, whoever comes and goes, also while it tells', () => {
    type Step = { kind: 'on' | 'off' | 'emit' | 'offWhileCalled' | 'onWhileCalled'; who: number };
    const step = fc.record<Step>({
      kind: fc.constantFrom('on', 'off', 'emit', 'offWhileCalled', 'onWhileCalled'),
      who: fc.nat(3),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const bus = new EngineEvents();
        const told = new RatchetEvents(bus, () => {});
        const got: number[] = [];
        /** What should be registered, in order, and what each does when it is called. */
        let expected: { who: number; off: () => void; then: 'stay' | 'leave' | 'bring' }[] = [];
        const register = (who: number, then: 'stay' | 'leave' | 'bring'): void => {
          const entry = { who, then, off: () => {} };
          entry.off = told.on('job.canceled', () => {
            got.push(who);
            if (then === 'leave') entry.off();
            if (then === 'bring') register(who, 'stay');
          });
          expected.push(entry);
        };
        for (const { kind, who } of steps) {
          if (kind === 'on') register(who, 'stay');
          else if (kind === 'offWhileCalled') register(who, 'leave');
          else if (kind === 'onWhileCalled') register(who, 'bring');
          else if (kind === 'off') {
            for (const entry of expected.filter((one) => one.who === who)) {
              entry.off();
              entry.off();
            }
            expected = expected.filter((one) => one.who !== who);
          } else {
            const now = expected.map((one) => one.who);
            got.length = 0;
            bus.emit('withdrawn', { jobId: 'j', running: false });
            expect(got).toEqual(now);
            expected = expected.filter(({ then }) => then !== 'leave');
          }
          expect(bus.heard('withdrawn')).toBe(expected.length > 0);
        }
      }),
    );
  });
});
