import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Job, RatchetModule } from 'nestjs-ratchet';
import { z } from 'zod';
import { engineFixture, type Node } from '../engine/engine-fixture.js';
import { deferred, laneOf, type TestHandler } from '../support/engine-node.js';

/** What a `work` job of this version does; retries come at once. */
const work = (policy: object, run: TestHandler) => ({
  work: { policy: { backoff: { type: 'none' }, ...policy }, run },
});

async function settled(node: Node, work: () => Promise<unknown>): Promise<void> {
  const done = node.events.next('settled');
  await work();
  await done;
}

describe('a definition that changes', () => {
  const fixture = engineFixture();

  const untouched = { status: 'pending', executions: 0, claimSeq: '0' };

  it('leaves its newer jobs to nodes that know the version, and the others say so', async () => {
    const ranOld: unknown[] = [];
    const ranNew: unknown[] = [];
    const old = await fixture.node({ handlers: work({}, (payload) => ranOld.push(payload)) });
    const passed = old.events.next('passed_over');
    const [newer] = await old.enqueue({ version: 2, payload: '{"orderId":"o2"}' });
    await old.runtime.start();
    await settled(old, () => old.enqueue({ payload: '"o1"' }));
    expect(await passed).toMatchObject({ names: ['work'] });
    expect(await old.store.get(newer!)).toMatchObject(untouched);
    expect(fixture.logs.filter(({ line }) => /only an older version of it.*work/.test(line))).toHaveLength(1);

    const next = await fixture.node({
      handlers: work({ version: 2, upcast: (stored: unknown) => ({ orderId: stored }) }, (payload) =>
        ranNew.push(payload),
      ),
    });
    await settled(next, () => next.runtime.start());
    expect(await old.store.get(newer!)).toMatchObject({ status: 'succeeded', executions: 1 });
    await old.runtime.close();
    await settled(next, () => next.enqueue({ payload: '"o3"' }));
    expect(ranOld).toEqual(['o1']);
    expect(ranNew).toEqual([{ orderId: 'o2' }, { orderId: 'o3' }]);
  });

  it('leaves a newer job that an old node redrives', async () => {
    const next = await fixture.node({
      handlers: work({ version: 2, maxRetries: 0 }, () => {
        throw new Error('not today');
      }),
    });
    await next.runtime.start();
    await settled(next, () => next.enqueue({ version: 2 }));
    await next.runtime.close();
    const [dead] = await fixture.database.query<{ id: string }>('select id from ratchet.dead_letter');

    const old = await fixture.node({ handlers: work({}, () => {}) });
    await old.runtime.start();
    const passed = old.events.next('passed_over');
    expect(await old.store.redrive(dead!.id)).toMatchObject({ outcome: 'redriven' });
    old.messages.newWork('default', 2, { behind: true });
    await settled(old, () => old.enqueue({}));
    await passed;
    expect(await old.store.get(dead!.id)).toMatchObject({ status: 'pending', version: 2, executions: 1 });
  });

  it('runs a retry of an older job as the definition says today', async () => {
    const seen: unknown[] = [];
    const old = await fixture.node({
      handlers: work({ backoff: { type: 'fixed', delay: '1h', jitter: 0 } }, () => {
        throw new Error('not yet');
      }),
    });
    await old.runtime.start();
    await settled(old, async () => old.enqueue({ payload: '"o1"' }));
    await old.runtime.close();
    await fixture.database.query('update ratchet.job set scheduled_at = now()');
    const next = await fixture.node({
      handlers: work(
        { version: 3, upcast: async (stored: unknown, from: number) => Promise.resolve([stored, from]) },
        (payload, { execution }) => seen.push(payload, execution),
      ),
    });
    await settled(next, () => next.runtime.start());
    expect(seen).toEqual([['o1', 1], 2]);
  });

  it('fails, retries and ends in the dead letter when upcast throws, and the error names both versions', async () => {
    let calls = 0;
    const node = await fixture.node({
      handlers: work(
        {
          version: 4,
          maxRetries: 1,
          upcast: () => {
            calls += 1;
            throw new Error('no such customer');
          },
        },
        () => {},
      ),
    });
    await node.runtime.start();
    const failed = node.events.next('settled', ({ outcome }) => outcome === 'failed');
    const [id] = await node.enqueue({ version: 2, payload: '{"a":1}' });
    await failed;
    expect(calls).toBe(2);
    const job = await node.store.get(id!);
    expect(job).toMatchObject({
      status: 'failed',
      executions: 2,
      failures: 2,
      payload: { a: 1 },
      version: 2,
    });
    expect(job?.error).toContain(
      'PAYLOAD_UPCAST_FAILED: "work": upcast from version 2 to 4 threw: no such customer',
    );
  });

  it('fails by its schema when a version was raised without upcast, and the error names both versions', async () => {
    const node = await fixture.node({
      handlers: work({ version: 2, maxRetries: 0, schema: z.object({ orderId: z.string() }) }, () => {}),
    });
    await node.runtime.start();
    await settled(node, () => node.enqueue({ payload: '{"id":"o1"}' }));
    const [row] = await fixture.database.query<{ error: string }>('select error from ratchet.dead_letter');
    expect(row?.error).toMatch(
      /payload\.orderId: .*\(stored by version 1, read by version 2, there is no upcast\)/,
    );
  });

  it.each([
    ['upcast', (hang: () => Promise<unknown>) => ({ upcast: hang })],
    [
      'schema',
      (hang: () => Promise<unknown>) => ({
        schema: { '~standard': { version: 1 as const, vendor: 'test', validate: hang } },
      }),
    ],
  ])('does not begin its handler when its %s outlives the timeout', async (_part, policy) => {
    const hold = deferred<unknown>();
    let ran = false;
    const node = await fixture.node({
      handlers: work({ version: 2, timeout: '50ms', maxRetries: 0, ...policy(() => hold.promise) }, () => {
        ran = true;
      }),
    });
    await node.runtime.start();
    const done = node.events.next('settled');
    const late = node.events.next('late');
    const [id] = await node.enqueue({});
    expect(await done).toMatchObject({ outcome: 'failed' });
    expect(await node.store.get(id!)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('JOB_TIMEOUT'),
    });
    hold.resolve({ value: {} });
    await late;
    expect(ran).toBe(false);
  });

  it('counts lane and priority from the row, retries and backoff from the node that runs it', async () => {
    const old = await fixture.node({});
    const [plain, own] = await old.enqueue(
      { lane: 'before', priority: 4 },
      { lane: 'before', maxRetries: 0 },
    );
    const node = await fixture.node({
      settings: { lanes: new Map([['before', laneOf()]]) },
      handlers: work({ lane: 'after', priority: 'low', maxRetries: 1 }, () => {
        throw new Error('never');
      }),
    });
    const both = node.count('settled', 2, ({ outcome }) => outcome === 'failed');
    await node.runtime.start();
    await both;
    expect(await node.store.get(plain!)).toMatchObject({ lane: 'before', priority: 4, executions: 2 });
    expect(await node.store.get(own!)).toMatchObject({ lane: 'before', executions: 1 });
  });

  it('may not be said twice with two versions', async () => {
    @Injectable()
    class OneJobs {
      @Job('same', { version: 1 })
      run(): void {}
    }
    @Injectable()
    class OtherJobs {
      @Job('same', { version: 2 })
      run(): void {}
    }
    const { database } = fixture;
    const app = await Test.createTestingModule({
      imports: [RatchetModule.forRoot({ connection: { url: database.url } })],
      providers: [OneJobs, OtherJobs],
    }).compile();
    await expect(app.init()).rejects.toMatchObject({
      code: 'DUPLICATE_HANDLER',
      message: expect.stringContaining('differ in version'),
    });
    await app.close();
  });
});
