import { afterEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DynamicHeartbeatCalculator } from '../../lib/cluster/heartbeat/dynamic-heartbeat-calculator.js';
import { Heartbeat } from '../../lib/cluster/heartbeat/heartbeat.js';
import { MainThreadBeater } from '../../lib/cluster/heartbeat/main-thread-beater.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type BeatAnswer, type BeatRequest, type NodeRef } from '../../lib/store/membership.js';
import { FakeClock, settled } from '../support/fake-clock.js';

const GRACE_MS = 30_000;

describe('DynamicHeartbeatCalculator', () => {
  const conditions = fc.record({ nodes: fc.integer({ min: 1, max: 5_000 }), backlog: fc.nat() });
  const limits = fc.record({
    graceMs: fc.integer({ min: 300, max: 3_600_000 }),
    baseMs: fc.integer({ min: 100, max: 600_000 }),
  });

  it('never waits so long that one lost beat kills a node, whatever the size of the cluster and the backlog', () => {
    fc.assert(
      fc.property(limits, conditions, (limit, condition) => {
        const wait = new DynamicHeartbeatCalculator(limit).intervalMs(condition);
        // One beat lost, the next one on its way: two waits and something for the round trip.
        expect(2 * wait).toBeLessThan(limit.graceMs);
        expect(wait).toBeGreaterThanOrEqual(Math.min(5_000, limit.graceMs / 3));
      }),
    );
  });

  it('beats no slower when there are more nodes or more work', () => {
    fc.assert(
      fc.property(limits, conditions, conditions, (limit, one, other) => {
        const calculator = new DynamicHeartbeatCalculator(limit);
        const more = {
          nodes: Math.max(one.nodes, other.nodes),
          backlog: Math.max(one.backlog, other.backlog),
        };
        expect(calculator.intervalMs(more)).toBeLessThanOrEqual(calculator.intervalMs(one));
      }),
    );
  });

  it('has the documented waits for the default limits', () => {
    const calculator = new DynamicHeartbeatCalculator({ baseMs: 10_000, graceMs: GRACE_MS });
    expect(calculator.intervalMs({ nodes: 1, backlog: 0 })).toBe(10_000);
    expect(calculator.intervalMs({ nodes: 3, backlog: 5 })).toBe(10_000);
    expect(calculator.intervalMs({ nodes: 5, backlog: 30 })).toBe(7_200);
    expect(calculator.intervalMs({ nodes: 50, backlog: 1_000 })).toBe(5_000);
  });
});

/** A heartbeat over a store whose answers the test decides. */
class Subject {
  readonly clock = new FakeClock();
  readonly events = new EngineEvents();
  readonly asked: BeatRequest[] = [];
  readonly heard: unknown[][] = [];
  readonly cordoned: boolean[] = [];
  readonly lines: string[] = [];
  answer: () => Promise<BeatAnswer> = () => Promise.resolve(ALIVE);
  names: string[] = [];
  running = 0;
  readonly heartbeat: Heartbeat;

  constructor(node: NodeRef = { id: 'n', epoch: '1' }) {
    const line = (message: string): void => void this.lines.push(message);
    const tell =
      (name: string) =>
      (...given: unknown[]): void =>
        void this.heard.push([name, ...given]);
    const store = {
      beat: (request: BeatRequest) => {
        this.asked.push(request);
        return this.answer();
      },
    };
    this.heartbeat = new Heartbeat(node, {
      beater: new MainThreadBeater(store, this.clock),
      clock: this.clock,
      events: this.events,
      limits: { baseMs: 10_000, graceMs: GRACE_MS },
      logger: { warn: line, error: line, log: line },
      onFault: tell('fault'),
      onWell: tell('well'),
      listener: {
        load: () => ({ running: this.running, backlog: this.running }),
        recentHandlers: () => this.names.splice(0),
        lost: tell('lost'),
        noticed: tell('noticed'),
        cordoned: (yes) => void this.cordoned.push(yes),
        buffersElsewhere: () => undefined,
        scheduled: tell('scheduled'),
        declaredDead: tell('declaredDead'),
        lease: tell('lease'),
      },
    });
    this.heartbeat.start();
  }

  /** In small steps, so that what is awaited meanwhile goes on. */
  async advance(ms: number): Promise<void> {
    for (let left = ms; ; left -= 100) {
      await settled();
      if (left <= 0) return;
      this.clock.advance(Math.min(100, left));
    }
  }

  stop(): Promise<void> {
    return this.heartbeat.stop();
  }
}

const ALIVE: BeatAnswer = { alive: true, nodes: 1, lost: false, notices: [], scheduleInMs: undefined };

describe('Heartbeat', () => {
  let subject: Subject;
  afterEach(() => subject.stop());

  it('beats at once, and then at the interval', async () => {
    subject = new Subject();
    await subject.advance(0);
    expect(subject.asked).toHaveLength(1);
    await subject.advance(9_900);
    expect(subject.asked).toHaveLength(1);
    await subject.advance(200);
    expect(subject.asked).toHaveLength(2);
    expect(subject.asked[0]).toMatchObject({ node: { id: 'n', epoch: '1' }, graceMs: GRACE_MS, running: 0 });
  });

  it('hands on what an answer says', async () => {
    subject = new Subject();
    const notice = { jobId: 'j', claimSeq: '4', reason: 'canceled' as const };
    subject.answer = () =>
      Promise.resolve({ ...ALIVE, nodes: 7, lost: true, notices: [notice], scheduleInMs: 40 });
    await subject.advance(10_100);
    expect(subject.heard).toEqual([
      ['noticed', [notice]],
      ['lost', false],
      ['scheduled', 40],
    ]);
    expect(subject.heartbeat.report().nodes).toBe(7);
  });

  it('hands on whether somebody drained the node, only of beats that found it alive', async () => {
    subject = new Subject();
    const answers: BeatAnswer[] = [
      { ...ALIVE, cordoned: true },
      { ...ALIVE, alive: false },
    ];
    subject.answer = () => Promise.resolve(answers.shift() ?? ALIVE);
    await subject.advance(31_000);
    expect(subject.cordoned).toEqual([false, true, false]);
  });

  it('declares nobody dead before its own beats were answered for half the grace: after an outage others need time as well', async () => {
    subject = new Subject();
    const mayDeclare = (): unknown => subject.heard.filter(([what]) => what === 'lost').at(-1)?.[1];
    subject.answer = () => Promise.resolve({ ...ALIVE, lost: true });
    await subject.advance(10_100);
    expect(mayDeclare()).toBe(false);
    await subject.advance(10_000);
    expect(mayDeclare()).toBe(true);
    // The database is away.
    subject.answer = () => Promise.reject(new Error('away'));
    await subject.advance(40_000);
    subject.answer = () => Promise.resolve({ ...ALIVE, lost: true });
    subject.heard.length = 0;
    await subject.advance(12_000);
    expect(mayDeclare()).toBe(false);
    await subject.advance(10_000);
    expect(mayDeclare()).toBe(true);
    // The whole machine stood still, and no beat failed.
    subject.clock.block(25_000);
    subject.heard.length = 0;
    await subject.advance(11_000);
    expect(mayDeclare()).toBe(false);
    await subject.advance(10_000);
    expect(mayDeclare()).toBe(true);
  });

  it('gives up the lease when nothing was acknowledged within the grace, and takes it again', async () => {
    subject = new Subject();
    await subject.advance(0);
    subject.answer = () => Promise.reject(new Error('away'));
    await subject.advance(GRACE_MS - 1_000);
    expect(subject.heartbeat.held).toBe(true);
    await subject.advance(4_000);
    expect(subject.heartbeat.held).toBe(false);
    expect(subject.heard.filter(([what]) => what === 'lease')).toEqual([['lease', false]]);
    subject.answer = () => Promise.resolve(ALIVE);
    await subject.advance(2_000);
    expect(subject.heartbeat.held).toBe(true);
    expect(subject.heard.filter(([what]) => what === 'lease')).toEqual([
      ['lease', false],
      ['lease', true],
    ]);
    expect(subject.heard).toContainEqual(['well']);
  });

  it('tells once that the node was declared dead, and beats for the next epoch at once', async () => {
    subject = new Subject();
    subject.answer = () => Promise.resolve({ ...ALIVE, alive: false });
    await subject.advance(25_000);
    expect(subject.heard).toEqual([['declaredDead', { id: 'n', epoch: '1' }]]);
    subject.answer = () => Promise.resolve(ALIVE);
    subject.heartbeat.rename({ id: 'n', epoch: '2' });
    await subject.advance(0);
    expect(subject.asked.at(-1)!.node.epoch).toBe('2');
  });

  it('gives the lease back for no registration: only for a beat of the new epoch that was acknowledged', async () => {
    subject = new Subject();
    await subject.advance(0);
    subject.answer = () => Promise.reject(new Error('away'));
    await subject.advance(GRACE_MS + 4_000);
    subject.lines.length = 0;
    for (let epoch = 2; epoch < 5; epoch += 1) {
      subject.heartbeat.rename({ id: 'n', epoch: String(epoch) });
      await subject.advance(GRACE_MS + 4_000);
    }
    expect(subject.heartbeat.held).toBe(false);
    expect(subject.heartbeat.report().held).toBe(false);
    expect(subject.heard.filter(([what]) => what === 'lease')).toEqual([['lease', false]]);
    expect(subject.lines).toEqual([]);
    subject.answer = () => Promise.resolve(ALIVE);
    await subject.advance(2_000);
    expect(subject.heartbeat.held).toBe(true);
    expect(subject.lines).toEqual(['node n: heartbeats are acknowledged again; it claims again']);
  });

  it('has no lease from a registration under another epoch to its first acknowledged beat, and says so only after the grace', async () => {
    subject = new Subject();
    await subject.advance(100);
    subject.answer = () => Promise.resolve({ ...ALIVE, alive: false });
    subject.heartbeat.rename({ id: 'n', epoch: '2' });
    expect(subject.heartbeat.held).toBe(false);
    await subject.advance(1_000);
    expect(subject.heartbeat.held).toBe(false);
    subject.answer = () => Promise.resolve(ALIVE);
    subject.heartbeat.rename({ id: 'n', epoch: '3' });
    await subject.advance(0);
    expect(subject.heartbeat.held).toBe(true);
    expect(subject.heard.filter(([what]) => what === 'lease')).toEqual([
      ['lease', false],
      ['lease', true],
    ]);
    expect(subject.lines).toEqual([]);
    subject.answer = () => Promise.reject(new Error('away'));
    subject.heartbeat.rename({ id: 'n', epoch: '4' });
    await subject.advance(GRACE_MS + 1_500);
    expect(subject.lines).toEqual([expect.stringMatching(/no heartbeat was acknowledged for 3\d{4} ms/)]);
  });

  it('reports a blocked event loop with the handlers that ran', async () => {
    subject = new Subject();
    await subject.advance(500);
    subject.names = ['invoice.send'];
    subject.clock.block(7_000);
    await subject.advance(1_000);
    expect(subject.lines).toHaveLength(1);
    expect(subject.lines[0]).toMatch(/stood still for \d{4} ms while these handlers ran: invoice\.send/);
  });

  it('says how busy the node is', async () => {
    subject = new Subject();
    subject.running = 60;
    await subject.advance(15_000);
    expect(subject.asked.at(-1)).toMatchObject({ running: 60 });
  });
});
