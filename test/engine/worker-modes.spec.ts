import { describe, expect, it } from '@jest/globals';
import { newJob, registerTestNode, turn } from '../support/store.js';
import { pollEvery } from '../support/poll.js';
import { engineFixture } from './engine-fixture.js';

describe("a node with worker: 'drain'", () => {
  const fixture = engineFixture();
  const settings = {
    worker: 'drain' as const,
    heartbeat: { baseMs: 100, graceMs: 900, stallMs: 300_000 },
    ...pollEvery(20),
  };

  it('takes back the jobs of a node that was killed, claims nothing and runs nothing', async () => {
    const ran: string[] = [];
    const drainer = await fixture.node({
      settings,
      handlers: {
        work: () => ran.push('work'),
        mail: { policy: { lane: 'mail' }, run: () => ran.push('mail') },
      },
    });
    const claimed: string[] = [];
    drainer.events.on('claimed', ({ jobId }) => claimed.push(jobId));
    const looked: unknown[] = [];
    drainer.events.on('schedules_looked', (look) => looked.push(look));

    const dead = await registerTestNode(drainer.real);
    const bucket = await drainer.real.openBucket(dead, 'default');
    const job = newJob({ name: 'work' });
    await drainer.real.insert([job]);
    const handlers = [{ name: 'work', version: 1 }];
    const answer = await drainer.real.exchange(turn(bucket, { want: 1, handlers }));
    expect(answer.claimed.map(({ id }) => id)).toEqual([job.id]);

    const rescued = drainer.count('rescued', 1, ({ recovered }) => recovered === 1);
    const kept = drainer.count('maintenance', 1, ({ outcome }) => outcome === 'done');
    await drainer.runtime.start();
    await fixture.database.query(
      `update ratchet.node set heartbeat_at = now() - interval '1 hour' where id = $1`,
      [dead.id],
    );
    await rescued;
    await kept;
    await drainer.enqueue({}, { name: 'mail', lane: 'mail' });
    await drainer.count('beat', 2);
    expect(await drainer.store.get(job.id)).toMatchObject({ status: 'pending', crashes: 1 });
    expect([claimed, ran, looked]).toEqual([[], [], []]);
    expect(
      await fixture.database.query(
        'select lanes, handlers, schedules, state, (select count(*)::int from ratchet.bucket) as buckets from ratchet.node',
      ),
    ).toEqual([{ lanes: [], handlers: [], schedules: [], state: 'running', buckets: 0 }]);
    expect(drainer.runtime.snapshot()).toMatchObject({
      worker: 'drain',
      state: 'running',
      lanes: [],
      buckets: [],
    });
    expect(fixture.logs.map(({ line }) => line).join('\n')).toMatch(
      /takes back the work of nodes that stopped, and runs nothing/,
    );
  });

  it('leaves like any other', async () => {
    const drainer = await fixture.node({ settings, handlers: { work: () => {} } });
    await drainer.runtime.start();
    await drainer.runtime.close();
    expect(await fixture.database.query('select 1 from ratchet.node')).toEqual([]);
    expect(fixture.logs.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  });
});
