import { createServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createTcpProxy } from '../support/tcp-proxy.js';
import { clientConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { EngineConnection } from '../../lib/store/postgres/connections/engine-connection.js';
import { PoolSqlClient } from '../../lib/store/postgres/connections/pool-sql-client.js';

/** A message of the server, by the protocol. */
const message = (type: string, body: Buffer): Buffer => {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('PoolSqlClient', () => {
  it('lives through the loss of a connection between two statements of a transaction', async () => {
    const client = new PoolSqlClient(clientConfigOf(database.url), 1);
    const lost = client.transaction(async (tx) => {
      const [row] = await tx.query('select pg_backend_pid() as pid', []);
      await database.query('select pg_terminate_backend($1)', [row?.['pid']]);
      for (;;) {
        const left = await database.query('select 1 from pg_stat_activity where pid = $1', [row?.['pid']]);
        if (left.length === 0) break;
      }
      await new Promise(setImmediate);
      return tx.query('select 1', []);
    });
    await expect(lost).rejects.toThrow();
    expect(await client.query({ text: 'select 1 as one' })).toEqual([{ one: 1 }]);
    await client.close();
  });

  it('lives through a session that is ended in the very packet that opens it', async () => {
    const opened = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]);
    const ended = message('E', Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0'));
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end(Buffer.concat([opened, ended])));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const client = new PoolSqlClient(() => Promise.resolve({ host: '127.0.0.1', port, user: 'u' }), 1);
    await expect(client.query({ text: 'select 1' })).rejects.toThrow();
    await client.close();
    await new Promise((resolve) => server.close(resolve));
  });

  it('asks for the password at each connect', async () => {
    const url = new URL(database.url);
    const real = decodeURIComponent(url.password);
    url.password = '';
    let asked = 0;
    const password = () => {
      asked += 1;
      return Promise.resolve(real);
    };
    const client = new PoolSqlClient(
      clientConfigOf({
        host: url.hostname,
        port: Number(url.port),
        username: url.username,
        database: url.pathname.slice(1),
        password,
      }),
      2,
    );
    await Promise.all([1, 2].map(() => client.query({ text: 'select pg_sleep(0.05)' })));
    // A server that trusts everybody asks for none.
    expect([0, 2]).toContain(asked);
    await client.close();
  });

  it('closes in bounded time with a statement in flight on a dead network', async () => {
    const proxy = await createTcpProxy(database.url);
    const client = new PoolSqlClient(clientConfigOf(proxy.url), 1);
    await client.query({ text: 'select 1' });
    proxy.freeze();
    const flight = client.query({ text: 'select 2' }).catch(() => 'rejected');
    await new Promise(setImmediate);
    const startedAt = performance.now();
    await client.close();
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(await flight).toBe('rejected');
    await proxy.close();
  });
});

describe('PoolSqlClient and a server that falls silent', () => {
  it('gives up on the statement, the transaction and the socket, and goes on with another', async () => {
    const proxy = await createTcpProxy(database.url);
    const client = new PoolSqlClient(clientConfigOf(proxy.url), 1, 200);
    await client.query({ text: 'select 1' });
    proxy.freeze();
    await expect(client.query({ text: 'select 2' })).rejects.toMatchObject({ kind: 'unknown' });
    proxy.thaw();
    expect(await client.query({ text: 'select 3 as three' })).toEqual([{ three: 3 }]);
    const lost = client.transaction(async (transaction) => {
      await transaction.query('select 4', []);
      proxy.freeze();
      await transaction.query('select 5', []);
    });
    await expect(lost).rejects.toMatchObject({ kind: 'unknown' });
    proxy.thaw();
    expect(await client.query({ text: 'select 6 as six' })).toEqual([{ six: 6 }]);
    await client.close();
    await proxy.close();
  });

  it('waits for what may take long', async () => {
    const client = new PoolSqlClient(clientConfigOf(database.url), 1, 50);
    const long = client.transaction((transaction) => transaction.query('select pg_sleep(0.2)::text', []), {
      patient: true,
    });
    await expect(long).resolves.toHaveLength(1);
    await client.close();
  });
});

describe('EngineConnection', () => {
  it('can be closed while it connects to a server that says nothing', async () => {
    const proxy = await createTcpProxy(database.url);
    proxy.freeze();
    const connection = new EngineConnection({
      config: clientConfigOf(proxy.url),
      applicationName: 'ratchet/x',
    });
    const flight = connection
      .query({ text: 'select 1' })
      .catch((error: unknown) => (error as { code: string }).code);
    await proxy.connected();
    await connection.close();
    expect(await flight).toBe('STORE_CLOSED');
    await proxy.close();
  });
});
