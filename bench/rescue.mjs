/**
 * `npm run bench:rescue -- [--runs N]`: how long it takes to give back what a dead node's bucket holds: 5 000 jobs, 50 of them begun, the
 * others only claimed ahead. From the bucket's adoption to its end, as the database sees it, and how many were charged with a crash:
 * those that had begun, or it throws.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { RatchetBuckets } from '../dist/index.js';
import { Noop, startApp } from './app.mjs';
import { median } from './measures.mjs';
import { freshDatabase, startServer } from './server.mjs';

const { values: args } = parseArgs({
  options: { runs: { type: 'string', default: '5' }, child: { type: 'string' } },
});
const JOBS = 5_000;
const BEGUN = 50;
const heartbeat = { interval: '1s', grace: '3s' };

/** Jobs that end at once, so that the buffer is filled: it is, whenever a slot comes free. */
const QUICK = 1_000;

/** The node that dies: but for the first ones its handlers never end, and its buffer takes all that is left. */
async function victim(url) {
  const options = { concurrency: BEGUN, lanes: { default: { bufferSize: 2 * JOBS } }, heartbeat };
  await startApp(url, options, ({ n }) => (n < QUICK ? undefined : new Promise(() => {})));
}

async function rescue(url) {
  const looker = await startApp(url, { worker: false });
  await looker.scheduler.enqueueMany(
    Noop,
    Array.from({ length: QUICK + JOBS }, (_, n) => ({ payload: { n } })),
  );
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // The database itself writes down when a bucket comes to a status, and when it is gone.
  await client.query(`
    create table moves (status text, at timestamptz);
    create function note_move() returns trigger language plpgsql as $$
    begin
      insert into moves values (case when tg_op = 'DELETE' then 'gone' else new.status end, clock_timestamp());
      return null;
    end $$;
    create trigger note_move after update or delete on ratchet.bucket for each row execute function note_move()`);
  const child = fork(fileURLToPath(import.meta.url), ['--child', url]);
  const held = async () => {
    const [bucket] = await looker.app.get(RatchetBuckets).list();
    return bucket && bucket.begun === BEGUN && bucket.begun + bucket.buffered === JOBS;
  };
  while (!(await held())) await sleep(50);
  child.kill('SIGKILL');
  await once(child, 'exit');
  const heir = await startApp(url, { worker: 'drain', heartbeat });
  const seconds = `select extract(epoch from max(at) filter (where status = 'gone') - max(at) filter (where status = 'draining'))::float8 as s from moves`;
  let took;
  while (took == null) {
    await sleep(100);
    took = (await client.query(seconds)).rows[0].s;
  }
  const { rows } = await client.query(
    `select count(*)::int as pending, count(*) filter (where crashes = 1)::int as charged,
            count(*) filter (where crashes = 0 and executions = 0)::int as free from ratchet.job where status = 0`,
  );
  await client.end();
  await heir.close();
  await looker.close();
  const { pending, charged, free } = rows[0];
  if (pending !== JOBS || charged !== BEGUN || free !== JOBS - BEGUN) {
    throw new Error(`given back ${pending} of ${JOBS}, charged ${charged} of ${BEGUN}, uncharged ${free}`);
  }
  return took;
}

async function main() {
  const server = await startServer();
  try {
    const runs = [];
    for (let run = 0; run < Number(args.runs); run++) {
      const { url } = await freshDatabase(server.url, 'bench_rescue');
      runs.push(await rescue(url));
    }
    console.log(
      `rescue of ${JOBS} jobs: median ${median(runs).toFixed(2)} s, longest ${Math.max(...runs).toFixed(2)} s; ` +
        `${BEGUN} charged, ${JOBS - BEGUN} not  [${runs.map((s) => s.toFixed(2)).join(', ')}]`,
    );
  } finally {
    await server.stop();
  }
}

await (args.child === undefined ? main() : victim(args.child));
