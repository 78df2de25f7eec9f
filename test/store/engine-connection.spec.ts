import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createTcpProxy } from '../support/tcp-proxy.js';
import { clientConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { EngineConnection } from '../../lib/store/postgres/connections/engine-connection.js';

let database: TestDatabase;
const open: EngineConnection[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((connection) => connection.close()));
});
afterAll(() => database.drop());

function engine(url = database.url, guardMs?: number): EngineConnection {
  const connection = new EngineConnection({
    config: clientConfigOf(url),
    applicationName: 'ratchet/a-node',
    ...(guardMs === undefined ? {} : { guardMs }),
  });
  open.push(connection);
  return connection;
}

const setting = async (connection: EngineConnection, name: string): Promise<unknown> =>
  (await connection.query({ text: `select current_setting($1) as value` }, [name]))[0]?.['value'];

describe('EngineConnection', () => {
  it('pins its plans, limits and name at connect', async () => {
    const connection = engine();
    expect(await setting(connection, 'plan_cache_mode')).toBe('force_generic_plan');
    expect(await setting(connection, 'enable_seqscan')).toBe('off');
    expect(await setting(connection, 'jit')).toBe('off');
    expect(await setting(connection, 'lock_timeout')).toBe('5s');
    expect(await setting(connection, 'default_transaction_isolation')).toBe('read committed');
    expect(await setting(connection, 'application_name')).toBe('ratchet/a-node');
  });

  it('keeps start-up options of the application beside its own', async () => {
    const url = new URL(database.url);
    url.searchParams.set('options', '-c work_mem=7MB');
    const connection = engine(url.href);
    expect(await setting(connection, 'work_mem')).toBe('7MB');
    expect(await setting(connection, 'jit')).toBe('off');
  });

  it('reads types its own way', async () => {
    const [row] = await engine().query({
      text: `select 9007199254740993::bigint as big, 1.5::float8 as float, '{"a":1}'::jsonb as json, array['x,"y', null] as texts,
                    true as yes, timestamptz '2026-01-02 03:04:05.123456+00' as moment`,
    });
    expect(row).toEqual({
      big: '9007199254740993',
      float: 1.5,
      json: { a: 1 },
      texts: ['x,"y', null],
      yes: true,
      moment: '2026-01-02 03:04:05.123456+00',
    });
  });

  it('opens another connection after an idle loss, which disturbs nobody', async () => {
    const connection = engine();
    const pid = (await connection.query({ text: 'select pg_backend_pid() as pid' }))[0]?.['pid'];
    const gone = connection.query({ text: 'select pg_terminate_backend(pg_backend_pid())' });
    await expect(gone).rejects.toMatchObject({ code: 'STORE_FAULT', kind: 'unknown' });
    const next = (await connection.query({ text: 'select pg_backend_pid() as pid' }))[0]?.['pid'];
    expect(next).not.toBe(pid);
    await database.terminateBackends('ratchet/%');
    // The loss may be noticed before or by the next statement; the one after it works in either case.
    await connection.query({ text: 'select 1' }).catch(() => undefined);
    expect(await connection.query({ text: 'select 1 as one' })).toEqual([{ one: 1 }]);
  });

  it('notices a socket that swallows everything, and goes on with another', async () => {
    const proxy = await createTcpProxy(database.url);
    const connection = engine(proxy.url, 300);
    await connection.query({ text: 'select 1' });
    proxy.freeze();
    await expect(connection.query({ text: 'select 2' })).rejects.toMatchObject({
      kind: 'unknown',
      sourceCode: 'ETIMEDOUT',
    });
    proxy.thaw();
    expect(await connection.query({ text: 'select 3 as three' })).toEqual([{ three: 3 }]);
    await connection.close();
    await proxy.close();
  });

  it('calls a lost reply unknown, a refused connect unavailable', async () => {
    const proxy = await createTcpProxy(database.url);
    const connection = engine(proxy.url);
    await connection.query({ text: 'select 1' });
    proxy.loseNextReply();
    await expect(connection.query({ text: 'select 2' })).rejects.toMatchObject({ kind: 'unknown' });
    await proxy.close();
    await expect(connection.query({ text: 'select 3' })).rejects.toMatchObject({ kind: 'unavailable' });
  });

  it('sends statements one after the other, and a failed one stops nobody', async () => {
    const connection = engine();
    const answers = await Promise.allSettled([
      connection.query({ text: 'select 1 as n' }),
      connection.query({ text: 'select 1/0' }),
      connection.query({ text: 'select 3 as n' }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('closes in bounded time, twice, and refuses statements then', async () => {
    const connection = engine();
    await connection.query({ text: 'select 1' });
    await Promise.all([connection.close(), connection.close()]);
    await expect(connection.query({ text: 'select 1' })).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  });
});

describe('EngineConnection behind a pooler that refuses start-up options', () => {
  let pooler: Server;
  const sockets = new Set<Socket>();

  /** Refuses as PgBouncer does when `options` is in the start-up packet, else passes everything on. */
  beforeAll(async () => {
    const { connect } = await import('node:net');
    const upstream = new URL(database.url);
    pooler = createServer((down) => {
      sockets.add(down);
      down.on('error', () => {});
      down.once('data', (first) => {
        if (first.includes('options\0')) {
          const text = 'SFATAL\0C08P01\0Munsupported startup parameter: options\0\0';
          const head = Buffer.alloc(5);
          head.write('E');
          head.writeInt32BE(4 + text.length, 1);
          down.end(Buffer.concat([head, Buffer.from(text)]));
          return;
        }
        const up = connect(Number(upstream.port), upstream.hostname);
        sockets.add(up);
        up.on('error', () => {});
        up.write(first);
        down.pipe(up).pipe(down);
      });
    });
    pooler.listen(0, '127.0.0.1');
    await once(pooler, 'listening');
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => pooler.close(resolve));
  });

  it('sets them by statements', async () => {
    const url = new URL(database.url);
    url.port = String((pooler.address() as { port: number }).port);
    const connection = engine(url.href);
    expect(await setting(connection, 'plan_cache_mode')).toBe('force_generic_plan');
    expect(await setting(connection, 'default_transaction_isolation')).toBe('read committed');
  });
});
