import { describe, expect, it } from '@jest/globals';
import { DRAIN_STEPS } from '../../lib/observability/engine-events.js';
import { createFlakyNetwork } from '../support/flaky-network.js';
import { createPostgresNode, deferred } from '../support/engine-node.js';
import { newJob } from '../support/store.js';
import { engineFixture } from './engine-fixture.js';

describe('start and shutdown', () => {
  const fixture = engineFixture();

  it('waits for running executions, which may enqueue meanwhile, and claims nothing more', async () => {
    const hold = deferred();
    const one = await fixture.node({
      handlers: {
        work: async () => {
          await hold.promise;
          await one.store.insert(Array.from({ length: 50 }, () => newJob({ name: 'later' })));
          one.messages.newWork('default', 2);
        },
        later: () => {},
      },
    });
    await one.runtime.start();
    const begun = one.events.next('claimed');
    const [id] = await one.enqueue({});
    await begun;
    const steps: string[] = [];
    one.events.on('drain', ({ step }) => steps.push(step));
    one.runtime.beginDrain();
    expect(one.runtime.state).toBe('draining');
    const drained = one.runtime.drain();
    await one.enqueue({ name: 'later' });
    hold.resolve();
    await drained;
    expect(await one.store.get(id!)).toMatchObject({ status: 'succeeded' });
    expect(await fixture.database.query(`select 1 from ratchet.job where status = 0`)).toHaveLength(51);
    expect(await fixture.database.query('select 1 from ratchet.bucket')).toHaveLength(0);
    expect(await fixture.database.query('select 1 from ratchet.node')).toHaveLength(0);
    await one.runtime.close();
    expect(steps).toEqual(DRAIN_STEPS);
    expect(one.runtime.state).toBe('closed');
  });

  it('hands back at the timeout, uncharged, what does not end; its late outcome goes to its own execution row', async () => {
    const one = await fixture.node({
      settings: { drainTimeoutMs: 50 },
      handlers: {
        work: (_payload, { signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(new Error('told to stop')), { once: true });
          }),
      },
    });
    await one.runtime.start();
    const begun = one.events.next('claimed');
    const [id] = await one.enqueue({});
    await begun;
    const late = one.events.next('late');
    await one.runtime.drain();
    expect(await late).toMatchObject({ recorded: true });
    expect(await one.store.get(id!)).toMatchObject({ status: 'pending', failures: 0, crashes: 0 });
    expect(await one.store.executions(id!)).toMatchObject([
      {
        outcome: 'released',
        error: `node ${one.id} shut down; job released`,
        lateError: expect.stringContaining('told to stop'),
      },
    ]);
  });

  it('is not held up by a handler that ignores its signal', async () => {
    const hold = deferred();
    const one = await fixture.node({
      settings: { drainTimeoutMs: 20 },
      handlers: { work: () => hold.promise },
    });
    await one.runtime.start();
    const begun = one.events.next('claimed');
    const [id] = await one.enqueue({});
    await begun;
    const beganMs = performance.now();
    await one.runtime.close();
    expect(performance.now() - beganMs).toBeLessThan(3_000);
    hold.resolve();
    const rows = await fixture.database.query(
      `select status, claim_seq::text from ratchet.job where id = $1`,
      [id],
    );
    expect(rows).toEqual([{ status: 0, claim_seq: '2' }]);
  });

  it('a claim that was in flight when the drain began is given back unbegun', async () => {
    let runs = 0;
    const one = await fixture.node({ handlers: { work: () => void (runs += 1) } });
    await one.runtime.start();
    await one.events.next('idle');
    const answered = deferred();
    const goOn = deferred();
    one.debug.at('exchange.answered', () => {
      answered.resolve();
      return goOn.promise;
    });
    const [id] = await one.enqueue({});
    await answered.promise;
    const drained = one.runtime.drain();
    goOn.resolve();
    await drained;
    expect(runs).toBe(0);
    expect(await one.store.get(id!)).toMatchObject({ status: 'pending' });
  });

  it('the last flush waits for a row that somebody holds', async () => {
    const hold = deferred();
    const one = await fixture.node({
      settings: { drainTimeoutMs: 100 },
      handlers: { work: () => hold.promise },
    });
    await one.runtime.start();
    const begun = one.events.next('claimed');
    const [id] = await one.enqueue({});
    await begun;
    const holder = await fixture.database.connect();
    await holder.query('begin');
    await holder.query('select 1 from ratchet.job where id = $1 for update', [id]);
    const releasing = deferred();
    one.debug.at('drain.releasing', () => {
      releasing.resolve();
      return undefined;
    });
    const waits = deferred();
    const real = one.real.exchange.bind(one.real);
    one.real.exchange = (request) => {
      if (request.wait) waits.resolve();
      return real(request);
    };
    const drained = one.runtime.drain();
    await Promise.all([releasing.promise, waits.promise]);
    await holder.query('commit');
    await drained;
    expect(await one.store.get(id!)).toMatchObject({ status: 'pending' });
    hold.resolve();
  });

  it('leaves and closes while a heartbeat gets no answer, and asks nothing of a closed store', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    const answer = deferred();
    one.real.beat = async () => {
      await answer.promise;
      return { alive: true, nodes: 1, lost: false, notices: [], scheduleInMs: undefined };
    };
    const faults: string[] = [];
    one.events.on('fault', ({ where, message }) => faults.push(`${where} ${message}`));
    await one.runtime.start();
    await one.runtime.close();
    expect(await fixture.database.query('select 1 from ratchet.node')).toEqual([]);
    answer.resolve();
    expect(faults).toEqual([]);
  });

  it('what an earlier process of the same id held runs again, with one crash charged', async () => {
    const hold = deferred();
    const first = await createPostgresNode(fixture.database.url, {
      nodeId: 'pod-0',
      settings: { drainTimeoutMs: 10 },
      handlers: { work: () => hold.promise },
    });
    await first.runtime.start();
    const begun = first.events.next('claimed');
    const [id] = await first.enqueue({});
    await begun;
    // As by SIGKILL: nothing is said to the database any more.
    await first.real.close();
    const second = await fixture.node({ nodeId: 'pod-0', handlers: { work: () => {} } });
    const settled = second.events.next('settled');
    await second.runtime.start();
    await settled;
    expect(await second.store.get(id!)).toMatchObject({ status: 'succeeded', crashes: 1, executions: 2 });
    hold.resolve();
    await first.runtime.close();
  });

  it('two live processes of one id: the first goes on under an id of its own, and says so', async () => {
    const first = await fixture.node({ nodeId: 'twin', handlers: { work: () => {} } });
    await first.runtime.start();
    const renamed = first.events.next('registered');
    const second = await fixture.node({ nodeId: 'twin', handlers: { other: () => {} } });
    await second.runtime.start();
    const settled = first.events.next('settled');
    await first.enqueue({});
    expect((await renamed).node).toMatch(/^twin~[0-9a-f]{8}$/);
    await settled;
    expect(fixture.logs.some(({ line }) => line.includes('another process registered as node twin'))).toBe(
      true,
    );
    expect(second.runtime.state).toBe('running');
  });

  it('a database that is away at start does not hold up the boot; the node begins when it is back', async () => {
    const network = await createFlakyNetwork(fixture.database.url);
    const one = await fixture.node({ handlers: { work: () => {} } }, network.url);
    network.refuse();
    await one.runtime.start();
    expect(one.runtime.state).toBe('starting');
    const registered = one.events.next('registered');
    network.restore();
    await registered;
    const settled = one.events.next('settled');
    await one.enqueue({});
    await settled;
    await one.runtime.close();
    await network.close();
  });

  it('closes in bounded time while the database is silent, and while it refuses', async () => {
    for (const fault of ['swallow', 'refuse'] as const) {
      const network = await createFlakyNetwork(fixture.database.url);
      const hold = deferred();
      const one = await createPostgresNode(network.url, {
        settings: { drainTimeoutMs: 200 },
        handlers: { work: () => hold.promise },
      });
      await one.runtime.start();
      const begun = one.events.next('claimed');
      await one.enqueue({});
      await begun;
      network[fault]();
      const beganMs = performance.now();
      hold.resolve();
      await one.runtime.close();
      expect(performance.now() - beganMs).toBeLessThan(200 + 12_000);
      await network.close();
    }
  });

  it('tolerates every order: twice, before the start, during it', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    await Promise.all([one.runtime.start(), one.runtime.start()]);
    await Promise.all([one.runtime.close(), one.runtime.close(), one.runtime.drain()]);
    await one.runtime.start();
    expect(one.runtime.state).toBe('closed');

    const never = await fixture.node({ handlers: { work: () => {} } });
    await never.runtime.close();
    await never.runtime.start();
    expect(never.runtime.state).toBe('closed');

    const during = await fixture.node({ handlers: { work: () => {} } });
    const registered = deferred();
    const goOn = deferred();
    during.debug.at('start.registered', () => {
      registered.resolve();
      return goOn.promise;
    });
    const started = during.runtime.start();
    await registered.promise;
    const closed = during.runtime.close();
    goOn.resolve();
    await Promise.all([started, closed]);
    expect(during.runtime.state).toBe('closed');
    expect(await fixture.database.query('select 1 from ratchet.bucket')).toHaveLength(0);
  });

  it('a fault at start that no waiting mends fails the boot, and can still be closed', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    void one.faults.fail('rescueOwn', { kind: 'fatal', when: 'before' });
    await expect(one.runtime.start()).rejects.toMatchObject({ code: 'STORE_FAULT', kind: 'fatal' });
    await one.runtime.close();
    expect(one.runtime.state).toBe('closed');
    expect(await fixture.database.query('select 1 from ratchet.node')).toHaveLength(0);
  });

  it('a job whose outcome the database refuses is given back by the drain, and it is said', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    await one.runtime.start();
    await one.events.next('idle');
    await refusing(['job_history', 'dead_letter'], async () => {
      const parked = one.count('fault', 3, ({ kind }) => kind === 'bad_row');
      const [id] = await one.enqueue({});
      await parked;
      await one.runtime.drain();
      expect(await one.store.get(id!)).toMatchObject({ status: 'pending' });
      expect(await one.store.executions(id!)).toMatchObject([{ outcome: 'released' }]);
    });
    const lines = fixture.logs.filter(({ level }) => level === 'error').map(({ line }) => line);
    expect(lines).toContainEqual(expect.stringMatching(/refuses to record 1 outcome /));
    expect(await fixture.database.query('select 1 from ratchet.bucket')).toEqual([]);
    expect(await fixture.database.query('select 1 from ratchet.node')).toEqual([]);
  });

  it('one that cannot even be given back waits, with its node, for the next process of that id', async () => {
    const first = await fixture.node({ nodeId: 'stuck', handlers: { work: () => {} } });
    await first.runtime.start();
    await first.events.next('idle');
    const [id] = await refusing(['job_history', 'dead_letter', 'execution'], async () => {
      const parked = first.count('fault', 3, ({ kind }) => kind === 'bad_row');
      const jobs = await first.enqueue({});
      await parked;
      await first.runtime.close();
      return jobs;
    });
    expect(fixture.logs.some(({ line }) => line.includes('not everything of node stuck'))).toBe(true);
    expect(await fixture.database.query('select status from ratchet.bucket')).not.toContainEqual({
      status: 'ready_to_delete',
    });
    const second = await fixture.node({ nodeId: 'stuck', handlers: { work: () => {} } });
    const settled = second.events.next('settled');
    await second.runtime.start();
    expect(await settled).toMatchObject({ jobId: id, outcome: 'succeeded' });
  });

  it('what cannot be closed does not keep the rest open, and is said', async () => {
    const closed: string[] = [];
    const broken = {
      close(): Promise<void> {
        throw new Error('the user made this one');
      },
    };
    const one = await fixture.node({
      handlers: { work: () => {} },
      parts: {
        resources: [
          broken,
          { close: () => Promise.reject(new Error('and that one')) },
          { close: async () => void closed.push('store') },
        ],
      },
    });
    await one.runtime.start();
    await one.runtime.close();
    expect(closed).toEqual(['store']);
    expect(one.runtime.state).toBe('closed');
    expect(fixture.logs.filter(({ line }) => /the user made this one|and that one/.test(line))).toHaveLength(
      2,
    );
    await one.real.close();
  });

  /** Meanwhile these tables take no row. */
  async function refusing<T>(tables: readonly string[], work: () => Promise<T>): Promise<T> {
    for (const table of tables) {
      await fixture.database.query(
        `alter table ratchet.${table} add constraint refused check (false) not valid`,
      );
    }
    try {
      return await work();
    } finally {
      for (const table of tables) {
        await fixture.database.query(`alter table ratchet.${table} drop constraint refused`);
      }
    }
  }

  it('worker: false registers nothing and runs nothing', async () => {
    const one = await fixture.node({ settings: { worker: false }, handlers: { work: () => {} } });
    await one.runtime.start();
    expect(one.runtime.state).toBe('running');
    expect(await fixture.database.query('select 1 from ratchet.node')).toHaveLength(0);
    expect(one.faults.calls('exchange')).toBe(0);
    await one.runtime.close();
  });

  it('thirty rounds of start and close leave no connection, no row and no timer behind', async () => {
    const one = await createPostgresNode(fixture.database.url, { handlers: { work: () => {} } });
    await one.runtime.close();
    const timers = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    for (let round = 0; round < 30; round += 1) {
      const node = await createPostgresNode(fixture.database.url, { handlers: { work: () => {} } });
      const settled = node.events.next('settled');
      await node.runtime.start();
      await node.enqueue({});
      await settled;
      await node.runtime.close();
    }
    const left = await fixture.database.query(
      `select application_name from pg_stat_activity where datname = current_database() and application_name like 'ratchet/%'`,
    );
    expect(left).toEqual([]);
    expect(await fixture.database.query('select 1 from ratchet.node')).toHaveLength(0);
    expect(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length).toBeLessThanOrEqual(
      timers + 2,
    );
  }, 120_000);
});
