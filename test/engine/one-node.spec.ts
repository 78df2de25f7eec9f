import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  createPostgresNode,
  deferred,
  type EngineNode,
  type EngineNodeOptions,
} from '../support/engine-node.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

describe('one node', () => {
  let database: TestDatabase;
  const nodes: EngineNode[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterEach(async () => {
    await Promise.all(nodes.splice(0).map((node) => node.runtime.close()));
    await database.query('truncate ratchet.job, ratchet.job_history, ratchet.dead_letter, ratchet.execution');
  });
  afterAll(() => database.drop());

  async function node(options: EngineNodeOptions): Promise<EngineNode> {
    const made = await createPostgresNode(database.url, options);
    nodes.push(made);
    return made;
  }

  it('runs a job that waited for it, and one that comes later without a poll', async () => {
    const ran: unknown[] = [];
    const one = await node({ handlers: { work: (payload) => ran.push(payload) } });
    await one.enqueue({ payload: '{"n":1}' });
    const first = one.events.next('settled');
    await one.runtime.start();
    await first;
    const second = one.events.next('settled');
    await one.enqueue({ payload: '{"n":2}' });
    expect(await second).toMatchObject({ outcome: 'succeeded' });
    expect(ran).toEqual([{ n: 1 }, { n: 2 }]);
  });

  it('retries without a poll, when its own retry is due', async () => {
    let runs = 0;
    const one = await node({
      handlers: {
        work: {
          policy: { backoff: { type: 'fixed', delay: 30 } },
          run: () => {
            runs += 1;
            if (runs < 3) throw new Error('not yet');
          },
        },
      },
    });
    await one.runtime.start();
    const done = one.events.next('settled', ({ outcome }) => outcome === 'succeeded');
    const [id] = await one.enqueue({});
    await done;
    expect(await one.store.get(id!)).toMatchObject({ status: 'succeeded', executions: 3, failures: 2 });
  });

  it('drains thousands of jobs in batches and never runs more than its slots', async () => {
    let running = 0;
    let most = 0;
    const one = await node({
      settings: { concurrency: 24 },
      handlers: {
        work: async () => {
          running += 1;
          most = Math.max(most, running);
          await Promise.resolve();
          running -= 1;
        },
      },
    });
    const turns: number[] = [];
    one.events.on('turn', ({ claimed }) => turns.push(claimed));
    await one.enqueue(...Array.from({ length: 2_000 }, () => ({})));
    const done = one.count('settled', 2_000);
    await one.runtime.start();
    await done;
    expect(most).toBe(24);
    expect(turns.filter((claimed) => claimed > 0).length).toBeLessThan(120);
  });

  it('leaves work with no handler here alone, and claims nothing without handlers', async () => {
    const none = await node({ handlers: {} });
    await none.runtime.start();
    expect(await database.query('select 1 from ratchet.bucket')).toHaveLength(0);
    const one = await node({ handlers: { work: () => {} } });
    await one.runtime.start();
    const done = one.events.next('settled');
    const [foreign] = await one.enqueue({ name: 'other' }, {});
    await done;
    expect(await one.store.get(foreign!)).toMatchObject({ status: 'pending', executions: 0 });
  });

  it('serves every lane that its definitions name', async () => {
    const hold = deferred();
    const one = await node({
      settings: { concurrency: 2 },
      handlers: { work: () => hold.promise, mail: { policy: { lane: 'mail' }, run: () => {} } },
    });
    await one.runtime.start();
    const begun = one.events.next('claimed');
    await one.enqueue({});
    await begun;
    const mailed = one.events.next('settled');
    await one.enqueue({ name: 'mail', lane: 'mail' });
    await mailed;
    hold.resolve();
    const lanes = await database.query('select lane from ratchet.bucket order by lane');
    expect(lanes).toEqual([{ lane: 'default' }, { lane: 'mail' }]);
  });
});
