/** Turns of one bucket straight on the store: what a claim costs, without handlers. */
import pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { clientConfigOf } from '../dist/store/postgres/connections/connection-config.js';
import { PoolSqlClient } from '../dist/store/postgres/connections/pool-sql-client.js';
import { PostgresJobStore } from '../dist/store/postgres/postgres-job-store.js';

/** A store with one registered node and one bucket. */
export async function openStore(url) {
  const config = clientConfigOf(url);
  const store = new PostgresJobStore({
    schema: 'ratchet',
    migrations: 'auto',
    engine: config,
    client: new PoolSqlClient(config, 2),
    exchangeConnections: 1,
    nodeLabel: 'bench',
    startup: { onDatabaseDown: 'fail', timeoutMs: 10_000 },
    inlinePayloadBytes: 1_000,
  });
  await store.open();
  const node = await store.registerNode({
    id: `bench-${uuidv7()}`,
    host: 'bench',
    pid: process.pid,
    version: '0',
    lanes: ['default'],
    handlers: ['bench.noop'],
  });
  const bucket = await store.openBucket(node, 'default');
  return { store, bucket };
}

/** Median milliseconds of a turn that settles and claims `want` jobs. */
export async function medianTurnMs(url, { turns, want }) {
  const { store, bucket } = await openStore(url);
  const times = [];
  let settle = [];
  for (let turn = 0; turn < turns; turn++) {
    const start = performance.now();
    const answer = await store.exchange({
      bucket,
      settle,
      progress: [],
      want,
      handlers: [{ name: 'bench.noop', version: 1 }],
      floors: {},
      suspect: false,
      wait: false,
      priorityBoostMs: 900_000,
    });
    times.push(performance.now() - start);
    if (answer.claimed.length !== want) throw new Error(`a turn claimed ${answer.claimed.length} of ${want}`);
    settle = answer.claimed.map(({ id, claimSeq }) => ({
      id,
      claimSeq,
      outcome: 'succeeded',
      result: 'null',
    }));
  }
  await store.close();
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
}

/** Pending jobs that arrived evenly over the last two hours, in all five streams, ids in call order as the library makes them. */
export async function fill(url, jobs) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    `insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, payload)
     select (lpad(to_hex(g), 12, '0') || substr(md5(random()::text), 1, 20))::uuid, 'bench.noop', 1, 'default', g % 5,
            now() - interval '2 hours' * (1 - g / $1::float8), now(), '{"n": 1}'
       from generate_series(1, $1::int) g`,
    [jobs],
  );
  await client.query('vacuum analyze ratchet.job');
  await client.end();
}
