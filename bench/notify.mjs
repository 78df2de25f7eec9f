/**
 * `npm run build && node bench/notify.mjs [--seconds N] [--rounds N] [--writers N] [--nodes N]`: what wakeups cost those who
 * write. Writers commit business transactions, each with one enqueue, through one process; the nodes listen, each on a
 * connection of its own, in a process beside it. Rounds alternate between the cases, so that the noise of the machine falls on all.
 *
 * off        no coordinator in the writing process, the nodes listen to nothing
 * listening  LISTEN/NOTIFY on, so many nodes in the registry and listening
 * alone      LISTEN/NOTIFY on, nobody listens: nothing may be sent
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { defineJob, JobScheduler, NoCoordinator, RatchetModule } from '../dist/index.js';
import { median } from './measures.mjs';
import { freshDatabase, startServer } from './server.mjs';

const { values: args } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
    writers: { type: 'string', default: '64' },
    nodes: { type: 'string', default: '8' },
    listen: { type: 'string' },
  },
});
const [seconds, rounds, writers, nodes] = [args.seconds, args.rounds, args.writers, args.nodes].map(Number);
const Written = defineJob('bench.written', { lane: 'written' });

/** The nodes: they listen, and have no handler, so that what is measured is the telling and not the running of jobs. */
if (args.listen) {
  const apps = [];
  for (let n = 0; n < nodes; n++) {
    class App {}
    Module({ imports: [RatchetModule.forRoot({ connection: args.listen, nodeId: `listener-${n}` })] })(App);
    apps.push(await NestFactory.createApplicationContext(App, { logger: ['error'] }));
  }
  process.send('ready');
  await once(process, 'message');
  for (const app of apps) await app.close();
  process.exit(0);
}

async function writer(url, extras) {
  class App {}
  Module({
    imports: [
      TypeOrmModule.forRoot({ type: 'postgres', url, extra: { max: writers } }),
      RatchetModule.forRoot({ dataSource: 'default', worker: false, ...extras }),
    ],
  })(App);
  return NestFactory.createApplicationContext(App, { logger: ['error'] });
}

/** Commits a second. */
async function write(app) {
  const source = app.get(DataSource);
  const scheduler = app.get(JobScheduler);
  const untilMs = performance.now() + seconds * 1000;
  let commits = 0;
  const one = async () => {
    while (performance.now() < untilMs) {
      await source.transaction(async (transaction) => {
        await transaction.query('insert into business (text) values ($1)', ['an order']);
        await scheduler.enqueue(Written, {}, { transaction });
      });
      commits++;
    }
  };
  await Promise.all(Array.from({ length: writers }, one));
  return commits / seconds;
}

async function listeners(url) {
  const child = fork(import.meta.filename, ['--listen', url, '--nodes', String(nodes)]);
  await once(child, 'message');
  return async () => {
    child.send('stop');
    await once(child, 'exit');
  };
}

const CASES = {
  off: { extras: { coordinator: NoCoordinator }, listen: true },
  listening: { extras: {}, listen: true },
  alone: { extras: {}, listen: false },
};

const server = await startServer();
try {
  const { url, version } = await freshDatabase(server.url, 'bench_notify');
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  await admin.query('create table business (id bigint generated always as identity primary key, text text)');
  const figures = { off: [], listening: [], alone: [] };
  for (let round = 0; round <= rounds; round++) {
    for (const [name, { extras, listen }] of Object.entries(CASES)) {
      const app = await writer(url, extras);
      const stop = listen ? await listeners(url) : undefined;
      const figure = await write(app);
      await app.close();
      await stop?.();
      await admin.query('truncate business, ratchet.job, ratchet.job_payload');
      // The first round warms up.
      if (round > 0) figures[name].push(figure);
    }
  }
  await admin.end();
  const off = median(figures.off);
  for (const [name, runs] of Object.entries(figures)) {
    const figure = median(runs);
    const loss = ((1 - figure / off) * 100).toFixed(1);
    console.log(
      `${name.padEnd(10)} ${figure.toFixed(0).padStart(7)} commits/s  ${loss.padStart(6)} % less than off  [${runs.map((run) => run.toFixed(0)).join(', ')}]`,
    );
  }
  console.log(
    `\n${writers} writers, ${nodes} listening nodes; Node ${process.version}, PostgreSQL ${version}, ${cpus().length} cores shared by all, fsync on.`,
  );
} finally {
  await server.stop();
}
