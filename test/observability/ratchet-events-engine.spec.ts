import { describe, expect, it } from '@jest/globals';
import { currentJob } from '../../lib/engine/async-context.js';
import { BRIDGES } from '../../lib/observability/ratchet-event-bridge.js';
import { type RatchetEventName } from '../../lib/observability/ratchet-event-map.js';
import { RatchetEvents } from '../../lib/observability/ratchet-events.js';
import { engineFixture, type Node } from '../engine/engine-fixture.js';
import { deferred } from '../support/engine-node.js';
import { pollEvery } from '../support/poll.js';

const ENDS = [
  'job.succeeded',
  'job.retrying',
  'job.failed',
  'job.snoozed',
  'job.released',
  'job.lost',
] as const;

interface Told {
  readonly name: RatchetEventName;
  readonly event: { readonly jobId?: string; readonly claimSeq?: string; readonly scheduleId?: string };
}

/** Everything that a node tells. */
function record(one: Node): { told: Told[]; events: RatchetEvents; of: (jobId: string) => Told[] } {
  const events = new RatchetEvents(one.events, (_event, error) => {
    throw error;
  });
  const told: Told[] = [];
  for (const name of Object.keys(BRIDGES) as RatchetEventName[]) {
    events.on(name, (event) => told.push({ name, event }));
  }
  return { told, events, of: (jobId) => told.filter(({ event }) => event.jobId === jobId) };
}

describe('events of the engine', () => {
  const fixture = engineFixture();
  const settings = { ...pollEvery(100) };
  const fast = { backoff: { type: 'fixed', delay: '1ms', jitter: 0 }, maxRetries: 1 };

  it('tell the life of a job: started, retrying, snoozed, failed, with what each needs', async () => {
    const one = await fixture.node({
      settings,
      handlers: {
        work: {
          policy: fast,
          run: (_payload, context) => {
            if (context.execution === 2) return context.snooze('1ms');
            throw new TypeError(`no ${context.execution}`);
          },
        },
      },
    });
    const { of } = record(one);
    await one.runtime.start();
    const failed = one.events.next('settled', ({ outcome }) => outcome === 'failed');
    const [id = ''] = await one.enqueue({ lane: 'default' });
    await failed;
    const execution = (n: number): object => ({
      jobId: id,
      name: 'work',
      lane: 'default',
      node: one.id,
      claimSeq: String(n),
      execution: n,
    });
    const durationMs = expect.any(Number);
    expect(of(id)).toEqual([
      { name: 'job.started', event: { ...execution(1), waitedMs: expect.any(Number) } },
      {
        name: 'job.retrying',
        event: {
          ...execution(1),
          failures: 1,
          delayMs: 1,
          durationMs,
          error: expect.stringContaining('no 1'),
        },
      },
      { name: 'job.started', event: { ...execution(2), waitedMs: expect.any(Number) } },
      { name: 'job.snoozed', event: { ...execution(2), delayMs: 1, durationMs } },
      { name: 'job.started', event: { ...execution(3), waitedMs: expect.any(Number) } },
      {
        name: 'job.failed',
        event: {
          ...execution(3),
          failures: 2,
          crashes: 0,
          durationMs,
          error: expect.stringContaining('no 3'),
        },
      },
    ]);
  });

  it('tell that a job of a node that stopped is over its crash budget, by the node that found it', async () => {
    const dead = await fixture.node({
      nodeId: 'same',
      settings,
      handlers: { work: () => new Promise(() => {}) },
    });
    await dead.runtime.start();
    const begun = dead.events.next('claimed');
    const [id = ''] = await dead.enqueue({});
    await begun;
    const next = await fixture.node({
      nodeId: 'same',
      settings: { ...settings, maxCrashRedeliveries: 0 },
      handlers: { work: () => {} },
    });
    const { of } = record(next);
    await next.runtime.start();
    expect(of(id)).toEqual([
      {
        name: 'job.failed',
        event: {
          jobId: id,
          name: 'work',
          lane: 'default',
          node: 'same',
          claimSeq: '1',
          execution: 1,
          error: 'node same stopped; outcome unknown; crash 1, the budget is 0 redeliveries',
          failures: 0,
          crashes: 1,
        },
      },
    ]);
  });

  it('tell an outcome after it is recorded', async () => {
    const one = await fixture.node({ settings, handlers: { work: () => 'done' } });
    const { events } = record(one);
    const status = deferred<string | undefined>();
    events.on('job.succeeded', async ({ jobId }) => status.resolve((await one.real.get(jobId))?.status));
    await one.runtime.start();
    await one.enqueue({});
    expect(await status.promise).toBe('succeeded');
  });

  it('tell what a reconcile finds recorded, once', async () => {
    const one = await fixture.node({ settings, handlers: { work: () => 'done' } });
    const { of } = record(one);
    await one.runtime.start();
    await one.events.next('idle');
    const begun = one.events.next('claimed');
    void begun.then(() => one.faults.fail('exchange', { kind: 'unknown', when: 'after' }));
    const reconciled = one.events.next('reconciled', ({ cause }) => cause === 'unknown_commit');
    const settled = one.events.next('settled');
    const [id = ''] = await one.enqueue({});
    expect(await reconciled).toMatchObject({ recorded: 1 });
    await settled;
    expect(of(id).map(({ name }) => name)).toEqual(['job.started', 'job.succeeded']);
  });

  it('tell a cancel from outside as lost, for that reason, and discard what comes after', async () => {
    const one = await fixture.node({
      // It is heard of with a heartbeat.
      settings: { ...settings, heartbeat: { baseMs: 500, graceMs: 3_000, stallMs: 300_000 } },
      handlers: {
        work: (_payload, { signal }) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve('late'))),
      },
    });
    const { of } = record(one);
    await one.runtime.start();
    const begun = one.events.next('claimed');
    const late = one.events.next('late');
    const [id = ''] = await one.enqueue({});
    await begun;
    await one.real.cancel(id);
    await late;
    expect(of(id)).toMatchObject([
      { name: 'job.started' },
      { name: 'job.lost', event: { reason: 'canceled', claimSeq: '1' } },
    ]);
  });

  it('tell every execution of a bucket that was taken away as lost', async () => {
    const one = await fixture.node({
      settings,
      handlers: {
        work: (_payload, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
      },
    });
    const { told } = record(one);
    await one.runtime.start();
    const begun = one.count('claimed', 3);
    await one.enqueue({}, {}, {});
    await begun;
    const lost = one.count('lost', 3);
    await fixture.database.query(`update ratchet.bucket set epoch = epoch + 1, status = 'lost'`);
    one.messages.newWork('default', 2);
    await lost;
    expect(told.filter(({ name }) => name === 'job.lost')).toHaveLength(3);
  });

  it('tell what a drain gives back, and end every execution that they began exactly once', async () => {
    const hold = deferred();
    const one = await fixture.node({
      settings: { ...settings, concurrency: 3, drainTimeoutMs: 50 },
      handlers: {
        work: { policy: fast, run: () => undefined },
        flaky: {
          policy: fast,
          run: () => {
            throw new Error('x');
          },
        },
        long: () => hold.promise,
      },
    });
    const { told, of } = record(one);
    await one.runtime.start();
    const held = one.events.next('claimed', ({ name }) => name === 'long');
    const done = one.count('settled', 30);
    const [long = ''] = await one.enqueue(
      { name: 'long' },
      ...Array.from({ length: 20 }, (_, n) => ({ name: n % 2 ? 'work' : 'flaky' })),
    );
    await held;
    await done;
    await one.runtime.drain();
    hold.resolve();
    expect(of(long)).toMatchObject([
      { name: 'job.started' },
      { name: 'job.released', event: { reason: 'shutdown' } },
    ]);
    const claims = (names: readonly RatchetEventName[]): string[] =>
      told
        .filter(({ name }) => names.includes(name))
        .map(({ event }) => `${event.jobId}/${event.claimSeq}`)
        .sort();
    expect(claims(['job.started'])).toHaveLength(31);
    expect(claims(ENDS)).toEqual(claims(['job.started']));
  });

  it("run listeners outside of any job's context", async () => {
    const one = await fixture.node({ settings, handlers: { work: () => 'done' } });
    const { events } = record(one);
    const seen = deferred<unknown>();
    events.on('job.started', async () => {
      await Promise.resolve();
      seen.resolve(currentJob());
    });
    await one.runtime.start();
    await one.enqueue({});
    expect(await seen.promise).toBeUndefined();
  });
});
