import { describe, expect, it } from '@jest/globals';
import {
  ClusterCoordinator,
  type ClusterSignal,
  type Wakeup,
  type WakeupHint,
} from '../../lib/cluster/cluster-coordinator.js';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { type PriorityRank } from '../../lib/jobs/priority.js';
import { PostgresBucketStore } from '../../lib/store/postgres/postgres-bucket-store.js';
import { registerTestNode } from '../support/store.js';
import { deferred, laneOf, type TestHandler } from '../support/engine-node.js';
import { engineFixture, type Node } from './engine-fixture.js';

const SLOTS = 4;
const BUFFER = 20;

/** Carries messages between the nodes of a test, at once. */
class Wire {
  readonly ends = new Set<WireEnd>();
}

class WireEnd extends ClusterCoordinator {
  readonly #wakeups = new Set<(wakeup: Wakeup) => void>();
  readonly #signals = new Set<(signal: ClusterSignal) => void>();

  constructor(private readonly wire: Wire) {
    super();
    wire.ends.add(this);
  }

  override notifyNewWork(priority: PriorityRank, source: string, lane: string, hint?: WakeupHint): void {
    for (const end of this.#others())
      for (const hear of end.#wakeups) hear({ priority, source, lane, ...hint });
  }

  override registerWakeupListener(listener: (wakeup: Wakeup) => void): () => void {
    this.#wakeups.add(listener);
    return () => this.#wakeups.delete(listener);
  }

  override publish(signal: ClusterSignal): void {
    for (const end of this.#others()) for (const hear of end.#signals) hear(signal);
  }

  override registerSignalListener(listener: (signal: ClusterSignal) => void): () => void {
    this.#signals.add(listener);
    return () => this.#signals.delete(listener);
  }

  override close(): Promise<void> {
    this.wire.ends.delete(this);
    return Promise.resolve();
  }

  #others(): WireEnd[] {
    return [...this.wire.ends].filter((end) => end !== this);
  }
}

describe('a bucket that claims ahead', () => {
  const fixture = engineFixture();
  const ahead = {
    concurrency: SLOTS,
    lanes: new Map([['default', laneOf({ concurrency: SLOTS, bufferSize: BUFFER })]]),
  };
  const many = (count: number): object[] => Array.from({ length: count }, () => ({}));

  async function started(work: TestHandler, options: { nodeId?: string; wire?: Wire } = {}): Promise<Node> {
    const { nodeId = `ahead-${String(Math.random()).slice(2, 10)}`, wire = new Wire() } = options;
    const coordinator = new WireEnd(wire);
    const node = await fixture.node({
      handlers: { work },
      settings: ahead,
      nodeId,
      parts: { coordinator, messages: new ClusterMessages(coordinator, nodeId) },
    });
    await node.runtime.start();
    return node;
  }

  /** A node whose slots and buffer are full, because its handlers wait. */
  async function full(options: { nodeId?: string; wire?: Wire } = {}): Promise<{
    node: Node;
    ids: readonly string[];
    ran: Set<string>;
    finish: () => void;
  }> {
    const { promise, resolve } = deferred();
    const ran = new Set<string>();
    const node = await started((_, { jobId, signal }) => {
      ran.add(jobId);
      return Promise.race([promise, new Promise((done) => signal.addEventListener('abort', done))]);
    }, options);
    const claimed = node.count('turn', 1, (turn) => turn.claimed === SLOTS + BUFFER);
    const ids = await node.enqueue(...many(SLOTS + BUFFER));
    await claimed;
    return { node, ids, ran, finish: () => resolve() };
  }

  it('runs what it claimed, each once, never more than its slots, and mostly without a claim in the statement', async () => {
    let running = 0;
    let most = 0;
    const ran: string[] = [];
    const node = await started(async (_, { jobId }) => {
      running += 1;
      most = Math.max(most, running);
      ran.push(jobId);
      await new Promise((done) => setImmediate(done));
      running -= 1;
    });
    const turns: number[] = [];
    node.events.on('turn', ({ wanted }) => turns.push(wanted));
    const done = node.count('settled', 400);
    const ids = await node.enqueue(...many(400));
    await done;
    expect([...ran].sort()).toEqual([...ids].sort());
    expect(most).toBe(SLOTS);
    expect(turns.filter((wanted) => wanted > 0).length).toBeLessThan(turns.length / 2);
    const [{ wrong }] = (await fixture.database.query<{ wrong: number }>(
      'select count(*)::int as wrong from ratchet.job_history where executions <> 1 or begun_at is null or begun_at > ended_at',
    )) as [{ wrong: number }];
    expect(wrong).toBe(0);
    // The marks of what is answered for are forgotten with a later exchange.
    const last = node.count('settled', 1);
    await node.enqueue({});
    await last;
    await node.runtime.drain();
    expect(await fixture.database.query('select 1 from ratchet.start_mark')).toEqual([]);
  });

  it('starts a handler only when its start is durable', async () => {
    const outcomes: unknown[] = [];
    const node: Node = await started(async (_, { jobId }) => {
      const executions = await node.store.executions(jobId);
      outcomes.push(executions.map(({ outcome, number }) => [outcome, number]));
    });
    const done = node.count('settled', 40);
    await node.enqueue(...many(40));
    await done;
    expect(outcomes).toEqual(Array.from({ length: 40 }, () => [['running', 1]]));
  });

  it('a crash is charged to what runs and not to what waits', async () => {
    const { node, ids, ran } = await full({ nodeId: 'ahead-crash' });
    expect(ran.size).toBe(SLOTS);
    const next = await registerTestNode(node.real, 'ahead-crash');
    expect(await node.real.rescueOwn(next, 3)).toMatchObject({
      recovered: SLOTS,
      failed: 0,
      unbegun: BUFFER,
    });
    for (const id of ids) {
      expect(await node.store.get(id)).toMatchObject({ status: 'pending', crashes: ran.has(id) ? 1 : 0 });
      expect(await node.store.executions(id)).toHaveLength(ran.has(id) ? 1 : 0);
    }
  });

  it('a drain gives back what waits, at once and uncharged, and lets the rest finish', async () => {
    const { node, ids, ran, finish } = await full();
    const back = node.count('settled', BUFFER, ({ outcome }) => outcome === 'released');
    const drained = node.runtime.drain();
    await back;
    expect(ran.size).toBe(SLOTS);
    finish();
    await drained;
    for (const id of ids) {
      const expected = ran.has(id)
        ? { status: 'succeeded', executions: 1 }
        : { status: 'pending', executions: 0, crashes: 0 };
      expect(await node.store.get(id)).toMatchObject(expected);
    }
    expect(await fixture.database.query('select 1 from ratchet.bucket')).toEqual([]);
  });

  it('a job that is canceled or paused while it waits does not run', async () => {
    const { node, ids, ran, finish } = await full();
    const [canceled, paused, ...others] = ids.filter((id) => !ran.has(id)).reverse();
    const { claimSeq } = (await node.store.cancel(canceled!)) as { claimSeq?: string };
    node.messages.signal({ kind: 'cancel', jobId: canceled!, ...(claimSeq ? { claimSeq } : {}) });
    await node.store.control({ kind: 'pause' }, { ids: [paused!] });
    const done = node.count('settled', SLOTS + others.length, ({ outcome }) => outcome === 'succeeded');
    const released = node.count('settled', 1, ({ outcome }) => outcome === 'released');
    finish();
    await Promise.all([done, released]);
    expect(ran.has(canceled!) || ran.has(paused!)).toBe(false);
    expect(await node.store.get(canceled!)).toMatchObject({ status: 'canceled', executions: 0 });
    expect(await node.store.get(paused!)).toMatchObject({ status: 'paused', executions: 0 });
  });

  it('a second node that finds nothing gets half of what the first has claimed ahead', async () => {
    const wire = new Wire();
    const { node, ids, finish } = await full({ wire });
    const elsewhere: string[] = [];
    const second = await started((_, { jobId }) => void elsewhere.push(jobId), { wire });
    const got = second.count('settled', BUFFER / 2);
    // Whether others may have claimed ahead it hears with its heartbeat.
    await second.events.next('beat');
    second.messages.newWork('default', 2);
    await got;
    expect(elsewhere).toHaveLength(BUFFER / 2);
    const rest = node.count('settled', SLOTS, ({ outcome }) => outcome === 'succeeded');
    finish();
    await rest;
    expect(new Set([...elsewhere, ...ids]).size).toBe(ids.length);
  });

  it.each(['before', 'after'] as const)(
    'loses nothing when the commit of a start is unknown (%s)',
    async (when) => {
      const ran: string[] = [];
      const node = await started((_, { jobId }) => void ran.push(jobId));
      let struck = 0;
      node.events.on('turn', () => {
        struck += 1;
        if (struck % 5 === 0) void node.faults.fail('exchange', { kind: 'unknown', when });
      });
      const done = node.count('settled', 200, ({ outcome }) => outcome === 'succeeded');
      const ids = await node.enqueue(...many(200));
      await done;
      expect([...ran].sort()).toEqual([...ids].sort());
    },
  );

  it('a job that may be a poison pill is run beside a full buffer', async () => {
    const node = await started(() => new Promise((done) => setImmediate(done)));
    const ids = await node.enqueue(...many(300));
    await fixture.database.query(
      `update ratchet.job set crashes = 2 where id = (select max(id::text)::uuid from ratchet.job where status = 0)`,
    );
    await node.count('settled', 1, ({ crashes }) => crashes === 2);
    const [{ waiting }] = (await fixture.database.query<{ waiting: number }>(
      'select count(*)::int as waiting from ratchet.job',
    )) as [{ waiting: number }];
    expect(waiting).toBeGreaterThan(0);
    expect(ids).toHaveLength(300);
  });

  it('gives back what waits when its lane is paused or its bucket drained by hand, with every slot taken', async () => {
    const paused = await full();
    const lanes = new PostgresBucketStore(paused.node.real);
    const back = paused.node.count('settled', BUFFER, ({ outcome }) => outcome === 'released');
    await lanes.pauseLane('default');
    paused.node.messages.newWork('default', 2, { behind: true });
    await back;
    expect(paused.ran.size).toBe(SLOTS);
    await lanes.resumeLane('default');
    const again = paused.node.count('turn', 1, ({ claimed }) => claimed > 0);
    paused.finish();
    await again;
  });

  it('does not give the same jobs back again and again to a node that cannot use them', async () => {
    const wire = new Wire();
    const { node, finish } = await full({ wire });
    const beggar = new WireEnd(wire);
    const hungry = (): void => beggar.publish({ kind: 'hungry', source: 'beggar', lane: 'default' });
    const back = node.count('settled', BUFFER / 2, ({ outcome }) => outcome === 'released');
    hungry();
    await back;
    let released = 0;
    node.events.on('settled', ({ outcome }) => (released += outcome === 'released' ? 1 : 0));
    // Nobody takes them: they come back to the giver, which does not listen for a while then.
    const refilled = node.count('turn', 1, ({ claimed }) => claimed > 0);
    finish();
    await refilled;
    for (let times = 0; times < 5; times += 1) hungry();
    await node.runtime.drain();
    expect(released).toBe(0);
    await beggar.close();
  });

  it('drops what waits when the bucket is taken away', async () => {
    const { node, ids, ran, finish } = await full();
    await fixture.database.query(`update ratchet.bucket set status = 'lost', epoch = epoch + 1`);
    const deposed = node.events.next('deposed');
    node.messages.newWork('default', 2);
    finish();
    await deposed;
    expect(ran.size).toBe(SLOTS);
    expect(ids).toHaveLength(SLOTS + BUFFER);
  });
});
