import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { MIGRATIONS } from '../../lib/store/postgres/migrations/index.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore } from '../support/store.js';
import { said } from './chaos-fixture.js';
import { compileLibrary, WorkerProcess } from './worker-process.js';

/** A deployment of several replicas meets a database that has nothing of ours yet. */
const NODES = ['a', 'b', 'c', 'd', 'e', 'f'];

let library: string;
beforeAll(() => {
  library = compileLibrary('first-boot');
});

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  ends.push(() => database.drop());
  return database;
}

/** Everything in the schema by its name and definition, as far as it is the same in two databases. */
async function schemaOf(database: TestDatabase): Promise<unknown[]> {
  return database.query(`
    select 'relation' as what, c.relkind::text as kind, c.relname::text as name, a.columns
      from pg_class c
      left join lateral (select string_agg(format('%s %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum) as columns
                           from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) a on true
     where c.relnamespace = 'ratchet'::regnamespace
     union all
    select 'function', p.prokind::text, p.proname::text, pg_get_function_identity_arguments(p.oid)
      from pg_proc p where p.pronamespace = 'ratchet'::regnamespace
     union all
    select 'constraint', c.contype::text, c.conname::text, pg_get_constraintdef(c.oid)
      from pg_constraint c where c.connamespace = 'ratchet'::regnamespace
     order by 1, 2, 3, 4`);
}

it('six processes that boot the whole module on an empty database at the same instant all come up, and work', async () => {
  const database = await emptyDatabase();
  const workers = NODES.map((nodeId, index) => {
    const worker = new WorkerProcess({
      library,
      url: database.url,
      sideUrl: database.url,
      nodeId,
      // Half of them on a DataSource of the application.
      options: { own: index % 2 === 1 },
      script: './first-boot-worker.mjs',
    });
    ends.push(() => worker.end());
    return worker;
  });
  await Promise.all(workers.map((worker) => worker.ready()));
  for (const worker of workers) worker.kill('SIGUSR2');

  const ended = await Promise.all(workers.map((worker) => worker.until(said('ended'))));
  expect(ended.map(({ answer }) => answer)).toEqual(NODES);
  expect(await database.query('select id from ratchet.node order by id')).toEqual(
    NODES.map((id) => ({ id })),
  );
  const applied = await database.query('select version, name from ratchet.migration order by version');
  expect(applied).toEqual(MIGRATIONS.map(({ name }, index) => ({ version: index + 1, name })));
  expect(
    await database.query(
      `select status, count(*)::int as n from ratchet.jobs where name like 'hello.%' group by 1`,
    ),
  ).toEqual([{ status: 'succeeded', n: NODES.length }]);

  for (const worker of workers) worker.kill('SIGTERM');
  await Promise.all(workers.map((worker) => worker.exited));
  const lines = workers.flatMap(({ log }) => log);
  // One of them made the schema; nobody had anything to complain of.
  expect(lines.filter((line) => line.includes('applied migration'))).toHaveLength(MIGRATIONS.length);
  expect(lines.filter((line) => /\b(ERROR|WARN|FATAL)\b|Warning:/.test(line))).toEqual([]);
  expect(workers.flatMap(({ events }) => events.filter(said('unhandledRejection')))).toEqual([]);

  // What six made together is what one makes alone.
  const alone = await emptyDatabase();
  const store = createStore(alone.url);
  ends.push(() => store.close());
  await store.open();
  await store.ensurePartitions(14);
  await database.query(`select ratchet.ensure_partitions(14)`);
  expect(await schemaOf(database)).toEqual(await schemaOf(alone));
}, 120_000);
