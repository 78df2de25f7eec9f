import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { type INestApplicationContext, Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { JobScheduler, RatchetBuckets } from 'nestjs-ratchet';
import { startEmbeddedPostgres } from 'nestjs-ratchet/embedded';
import pg from 'pg';
import { printProof, readProof } from './ended-jobs.js';
import { LANES_SCHEMA, LanesModule } from './lanes.module.js';
import { LiveView } from './live-view.js';
import { Load } from './load.js';
import { NodeProcess } from './node-process.js';
import { PATIENCE_MS, Story } from './story.js';

/** Three processes, two lanes, jobs of all priorities; people pause, drain and kill. It takes about twenty seconds. */
const NODES = ['node-1', 'node-2', 'node-3'];

Logger.overrideLogger(['fatal', 'error']);
const own = process.env['DATABASE_URL'];
const embedded = own
  ? undefined
  : await startEmbeddedPostgres({ dataDir: process.argv[2] ?? '.ratchet/sample-lanes' });
try {
  process.exitCode = (await run(own ?? embedded?.url ?? '')) ? 0 : 1;
} finally {
  await embedded?.stop();
}

async function run(databaseUrl: string): Promise<boolean> {
  await dropSchema(databaseUrl);
  const app = await NestFactory.createApplicationContext(LanesModule.for(databaseUrl), {
    abortOnError: false,
  });
  const nodes = NODES.map((nodeId) => new NodeProcess(nodeId, databaseUrl));
  try {
    const expected = await underLoad(app, nodes);
    return printProof(await readProof(databaseUrl), expected);
  } finally {
    for (const node of nodes) node.stop();
    await Promise.all(nodes.map(({ ended }) => ended));
    await app.close();
  }
}

/** Returns when all jobs have ended: how many there were, and how many executions the kill has cut off. */
async function underLoad(
  app: INestApplicationContext,
  nodes: readonly NodeProcess[],
): Promise<{ enqueued: number; crashed: number }> {
  const [buckets, scheduler] = [app.get(RatchetBuckets), app.get(JobScheduler)];
  console.log(`${NODES.join(', ')}: three processes with eight slots each, lanes "mail" and "reports".`);
  console.log('Each serves the default lane too; nothing uses it here, and it is not shown.\n');
  await Promise.all(nodes.map(({ ready }) => ready));
  const load = new Load(app);
  const view = new LiveView({ buckets, scheduler, out: process.stdout });
  view.start();
  try {
    view.say(`mail of priority lowest is refused:\n  ${await load.refusal()}`);
    await load.backlog();
    load.start();
    const crashed = await new Story({ buckets, scheduler, view, nodes }).tell();
    await load.stop();
    view.say('no more jobs; those that wait are finished');
    for (const lastMs = performance.now() + PATIENCE_MS; ;) {
      if ((await scheduler.count({ status: ['pending', 'running'] })) === 0) break;
      if (performance.now() > lastMs) throw new Error('waited in vain: all jobs have ended');
      await sleep(100);
    }
    return { enqueued: load.enqueued, crashed };
  } finally {
    await load.stop();
    await view.stop();
  }
}

async function dropSchema(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(`drop schema if exists ${LANES_SCHEMA} cascade`);
  await client.end();
}
