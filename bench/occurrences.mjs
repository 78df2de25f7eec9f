/**
 * `npm run build && node bench/occurrences.mjs [seconds]`: how long after its planned time an occurrence's handler starts, on an idle
 * node that shares the clock of its database; one schedule, due each second.
 */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RatchetModule, Recurring } from '../dist/index.js';
import { freshDatabase, startServer } from './server.mjs';

const SECONDS = Number(process.argv[2] ?? 60);
const late = [];
let finish;
const finished = new Promise((resolve) => (finish = resolve));

class Handlers {
  tick({ scheduledFor }) {
    late.push(Date.now() - scheduledFor.getTime());
    if (late.length === SECONDS + 2) finish();
  }
}
Recurring({ every: '1s' }, { id: 'bench-tick', timeZone: 'UTC' })(
  Handlers.prototype,
  'tick',
  Object.getOwnPropertyDescriptor(Handlers.prototype, 'tick'),
);

const server = await startServer();
try {
  const { url, version } = await freshDatabase(server.url, 'bench_occurrences');
  class App {}
  Module({ imports: [RatchetModule.forRoot({ connection: url })], providers: [Handlers] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: ['error', 'warn'] });
  await finished;
  await app.close();
  // The first ones find nothing compiled yet.
  const sorted = late.slice(2).sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)];
  console.log(
    `${sorted.length} occurrences: due to handler start p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${sorted.at(-1)} ms (PostgreSQL ${version})`,
  );
} finally {
  await server.stop();
}
