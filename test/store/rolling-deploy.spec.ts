import { describe, expect, it } from '@jest/globals';
import { SCHEMA_VERSION } from '../../lib/store/postgres/migrations/index.js';
import { stepSql } from '../../lib/store/postgres/migrations/migration-sql.js';
import { type Migration } from '../../lib/store/postgres/migrations/migration.js';
import { engineFixture, type Node } from '../engine/engine-fixture.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';
import { deferred, type TestHandlers } from '../support/engine-node.js';
import { pollEvery } from '../support/poll.js';

/** What a later version may do to a schema that nodes of this one work with: add. */
const next: Migration = {
  version: SCHEMA_VERSION + 1,
  name: 'synthetic',
  oldestNode: SCHEMA_VERSION,
  sql: [
    ...['job', 'job_history', 'dead_letter', 'execution', 'node', 'bucket', 'lease', 'notice'].map(
      (table) => `alter table $schema$.${table} add column synthetic text not null default 'new';`,
    ),
    'create index job_synthetic on $schema$.job (synthetic);',
    'create table $schema$.synthetic (id int primary key);',
  ].join('\n'),
};

describe('a rolling deploy', () => {
  const fixture = engineFixture();
  // The grace is so long that no node takes back what the test does.
  const settings = {
    ...pollEvery(50),
    heartbeat: { baseMs: 10_000, graceMs: 3_600_000, stallMs: 300_000 },
  };

  it('of a schema with additions leaves running nodes at work, and lets more of the old version start', async () => {
    const { database } = fixture;
    const held = deferred();
    const began: string[] = [];
    const handlers: TestHandlers = {
      work: () => {},
      hold: (_payload, { jobId }) => {
        began.push(jobId);
        return held.promise;
      },
      fail: {
        policy: { maxRetries: 1, backoff: { type: 'fixed', delay: '1ms', jitter: 0 } },
        run: () => {
          throw new Error('always');
        },
      },
    };
    const one = await fixture.node({ handlers, settings });
    const two = await fixture.node({ handlers: { work: () => {} }, settings });
    await Promise.all([one.runtime.start(), two.runtime.start()]);
    const claimed = one.count('claimed', 2, ({ name }) => name === 'hold');
    const holding = await one.enqueue({ name: 'hold' }, { name: 'hold' });
    await claimed;
    // A process that died under the old schema, with a job.
    const dead = createStore(database.url);
    await dead.open();
    const lost = await registerTestNode(dead, 'dead');
    const bucket = await dead.openBucket(lost, 'graveyard');
    const orphan = newJob({ lane: 'graveyard' });
    await dead.insert([orphan]);
    expect((await dead.exchange(turn(bucket))).claimed).toHaveLength(1);

    await database.query(stepSql('ratchet', next));

    // Begun before, ended after; begun and ended after, with every outcome; canceled after.
    const settled = one.count('settled', 1, ({ jobId }) => jobId === holding[0]);
    expect(await one.store.cancel(holding[1] as string)).toMatchObject({ outcome: 'canceled_running' });
    held.resolve();
    await settled;
    const worked = Promise.all([one, two].map((node) => node.events.next('settled')));
    const buried = one.count('settled', 1, ({ name, outcome }) => name === 'fail' && outcome === 'failed');
    await one.enqueue(...Array.from({ length: 600 }, () => ({})), { name: 'fail' });
    two.messages.newWork('default', 2);
    await Promise.all([worked, buried]);
    // Beaten and rescued.
    expect((await one.store.beat({ node: lost, graceMs: 30_000, running: 0, lagMs: 0 })).alive).toBe(true);
    await database.query(
      `update ratchet.node set heartbeat_at = now() - interval '10 minutes' where id = 'dead'`,
    );
    const beater = await registerTestNode(dead, 'beater');
    const report = await one.store.rescueLost({ node: beater, graceMs: 300_000, maxCrashRedeliveries: 3 });
    expect(report.drained).toMatchObject([{ lane: 'graveyard', recovered: 1 }]);
    expect(await dead.get(orphan.id)).toMatchObject({ status: 'pending', crashes: 1 });
    await dead.close();

    // One more of the old version.
    const three = await fixture.node({ handlers: { late: () => {} }, settings });
    await three.runtime.start();
    const late = three.events.next('settled');
    await three.enqueue({ name: 'late' });
    expect(await late).toMatchObject({ outcome: 'succeeded' });
    expect(fixture.logs.filter(({ level }) => level === 'error')).toEqual([]);

    await database.query(`update ratchet.migration set oldest_node = version where name = 'synthetic'`);
    const refused = createStore(database.url);
    await expect(refused.open()).rejects.toMatchObject({ code: 'SCHEMA_NEWER' });
    await refused.close();
    await database.query(
      `update ratchet.migration set oldest_node = ${SCHEMA_VERSION} where name = 'synthetic'`,
    );
  });

  it.each(['old', 'new'] as const)(
    'leaves jobs of a new handler to the new node, the %s one first',
    async (first) => {
      const ran: string[] = [];
      const note =
        (node: string) =>
        (_payload: unknown, { name }: { name: string }): void =>
          void ran.push(`${node} ${name}`);
      const start = async (version: 'old' | 'new'): Promise<Node> => {
        const node = await fixture.node({
          settings,
          handlers: version === 'old' ? { work: note('old') } : { work: note('new'), added: note('new') },
        });
        await node.runtime.start();
        return node;
      };
      const one = await start(first);
      const jobs = Array.from({ length: 40 }, (_, index) => ({ name: index % 2 ? 'added' : 'work' }));
      const done = (node: Node, name: string, n: number): Promise<void> =>
        node.count('settled', n, (event) => event.name === name);
      // Those that came before the other node are there too.
      const alone =
        first === 'new'
          ? Promise.all([done(one, 'added', 20), done(one, 'work', 20)])
          : done(one, 'work', 20);
      await one.enqueue(...jobs);
      await alone;
      if (first === 'old') {
        expect(ran).not.toContain('old added');
        expect(await fixture.database.query("select 1 from ratchet.job where name = 'added'")).toHaveLength(
          20,
        );
      }
      const other = await start(first === 'old' ? 'new' : 'old');
      const [older, newer] = first === 'old' ? [one, other] : [other, one];
      const added = done(newer, 'added', first === 'old' ? 40 : 20);
      if (first === 'old') newer.messages.newWork('default', 2);
      await older.enqueue(...jobs);
      await added;
      expect(ran.filter((run) => run === 'new added')).toHaveLength(40);
      expect(ran).not.toContain('old added');
    },
  );
});
