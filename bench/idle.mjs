/**
 * `npm run build && node bench/idle.mjs [--minutes N] [--nodes N] [--lanes N]`: what idle nodes ask of the database. Each node is
 * in deep idle (its option `poll.deepIdleAfter` is shortened), everything else has its default. The statements are counted on the
 * wire, by a proxy that reads the messages of the client, whichever thread or connection they come from.
 */
import { createServer, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { defineJob, Job, RatchetModule } from '../dist/index.js';
import { freshDatabase, startServer } from './server.mjs';

const { values: args } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    nodes: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '1' },
  },
});
const [minutes, nodes, lanes] = [args.minutes, args.nodes, args.lanes].map(Number);
/** Until the boot and its burst are over. */
const SETTLE_MS = 20_000;
const counts = new Map();

/** Reads the messages of one client: a statement is sent by Query, or by Execute of what Bind named. */
function reader() {
  const texts = new Map();
  let rest = Buffer.alloc(0);
  let started = false;
  let bound = '';
  const name = (body, from = 0) => body.toString('utf8', from, body.indexOf(0, from));
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const head = started ? 1 : 0;
      if (rest.length < head + 4) return;
      const length = head + rest.readUInt32BE(head);
      if (rest.length < length) return;
      const type = String.fromCharCode(rest[0]);
      const body = rest.subarray(head + 4, length);
      rest = rest.subarray(length);
      if (!started) {
        // An SSLRequest is followed by the start-up message proper.
        started = body.readUInt32BE(0) !== 80877103;
        continue;
      }
      if (type === 'P') texts.set(name(body), name(body, body.indexOf(0) + 1));
      if (type === 'B') bound = texts.get(name(body, body.indexOf(0) + 1)) ?? '?';
      if (type === 'E') count(bound);
      if (type === 'Q') count(name(body));
    }
  };
}

function count(text) {
  const label = KINDS.find(([, pattern]) => pattern.test(text))?.[0] ?? text.trim().slice(0, 80);
  counts.set(label, (counts.get(label) ?? 0) + 1);
}

const KINDS = [
  ['beat', /heartbeat_at = c\.now/],
  ['LISTEN probe', /pg_listening_channels/],
  ['lease', /\.lease\b/],
];

async function proxyTo(url) {
  const { hostname, port } = new URL(url);
  const server = createServer((client) => {
    const upstream = connect(Number(port || 5432), hostname);
    const read = reader();
    client.on('data', read);
    client.pipe(upstream).pipe(client);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ]) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxied = new URL(url);
  proxied.hostname = '127.0.0.1';
  proxied.port = String(server.address().port);
  return { url: proxied.href, server };
}

const server = await startServer();
const database = await freshDatabase(server.url, 'ratchet_bench_idle');
const proxy = await proxyTo(database.url);
const apps = [];
for (let n = 0; n < nodes; n++) {
  class Handlers {
    async run() {}
  }
  const descriptor = Object.getOwnPropertyDescriptor(Handlers.prototype, 'run');
  Job(defineJob('bench.idle'))(Handlers.prototype, 'run', descriptor);
  class App {}
  const more = Object.fromEntries(Array.from({ length: lanes - 1 }, (_, lane) => [`lane${lane}`, {}]));
  const ratchet = RatchetModule.forRoot({
    connection: proxy.url,
    poll: { deepIdleAfter: '1s' },
    lanes: more,
  });
  Module({ imports: [ratchet], providers: [Handlers] })(App);
  apps.push(await NestFactory.createApplicationContext(App, { logger: ['error', 'warn'] }));
}
await sleep(SETTLE_MS);
counts.clear();
await sleep(minutes * 60_000);
const rows = [...counts].sort(([, a], [, b]) => b - a);
const perMinute = (sum) => (sum / minutes / nodes).toFixed(1);
console.log(
  `statements a minute and node: ${nodes} nodes, ${lanes} lanes, ${minutes} minutes, PostgreSQL ${database.version}`,
);
for (const [label, sum] of rows) console.log(`${perMinute(sum).padStart(6)}  ${label.replace(/\s+/g, ' ')}`);
console.log(`${perMinute(rows.reduce((sum, [, n]) => sum + n, 0)).padStart(6)}  in all`);
for (const app of apps) await app.close();
proxy.server.close();
await server.stop();
