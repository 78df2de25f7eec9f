import 'reflect-metadata';
import { type INestApplicationContext, Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RecurringScheduler } from 'nestjs-ratchet';
import { startEmbeddedPostgres } from 'nestjs-ratchet/embedded';
import pg from 'pg';
import { allEnded, printTicks, readTicks } from './occurrence-table.js';
import { TICK } from './tick.jobs.js';
import { TICK_SCHEMA, TickModule } from './tick.module.js';
import { Worker } from './worker.js';

/** Three processes, one schedule of each second. After some occurrences the process that ran the last one is killed. */
const NODES = ['node-1', 'node-2', 'node-3'];
const KILL_AFTER = 6;
const STOP_AFTER = 14;

Logger.overrideLogger(['fatal', 'error']);
const own = process.env['DATABASE_URL'];
const embedded = own
  ? undefined
  : await startEmbeddedPostgres({ dataDir: process.argv[2] ?? '.ratchet/sample-recurring' });
const url = own ?? embedded?.url ?? '';
try {
  process.exitCode = (await run(url)) ? 0 : 1;
} finally {
  await embedded?.stop();
}

async function run(databaseUrl: string): Promise<boolean> {
  await dropSchema(databaseUrl);
  const asking = await NestFactory.createApplicationContext(TickModule.for(databaseUrl), {
    abortOnError: false,
  });
  try {
    await tickAndKill(asking, databaseUrl);
    console.log('\nWhat the database says:\n');
    return printTicks(await readTicks(asking));
  } finally {
    await asking.close();
  }
}

/** Resolves when all processes have ended. */
async function tickAndKill(asking: INestApplicationContext, databaseUrl: string): Promise<void> {
  let ticks = 0;
  let killed: Worker | undefined;
  const workers = NODES.map((nodeId) => new Worker(nodeId, databaseUrl, onTick));
  console.log(`${NODES.join(', ')}: three processes, one schedule: each second.\n`);
  for (const worker of workers)
    void worker.ended.then((why) => {
      if (worker !== killed && ticks < STOP_AFTER) {
        console.error(`${worker.nodeId} ended by itself: ${String(why)}`);
        for (const other of workers) other.kill();
      }
    });
  await Promise.all(workers.map(({ ended }) => ended));

  async function stop(): Promise<void> {
    await asking.get(RecurringScheduler).pause(TICK);
    await allEnded(asking);
    for (const each of workers) each.stop();
  }

  function onTick(worker: Worker, scheduledFor: string): void {
    ticks += 1;
    console.log(`${scheduledFor.slice(11, 19)}  ${worker.nodeId}`);
    if (ticks === KILL_AFTER) {
      killed = worker;
      // Not at once, so that what it has just done is recorded: a job whose process dies in its midst runs again, as all jobs do.
      setTimeout(() => {
        console.log(`          kill -9 ${worker.nodeId}`);
        worker.kill();
      }, 400);
    }
    if (ticks === STOP_AFTER)
      stop().catch((error: unknown) => {
        console.error(error);
        for (const each of workers) each.kill();
      });
  }
}

async function dropSchema(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(`drop schema if exists ${TICK_SCHEMA} cascade`);
  await client.end();
}
