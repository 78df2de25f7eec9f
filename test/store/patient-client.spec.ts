import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { clientConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { PatientClient } from '../../lib/store/postgres/connections/patient-client.js';

describe('PatientClient', () => {
  let database: TestDatabase;
  let proxy: TcpProxy;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  beforeEach(async () => {
    proxy = await createTcpProxy(database.url);
  });
  afterEach(() => proxy.close());
  afterAll(() => database.drop());

  const silence = { kind: 'unknown', sourceCode: 'ETIMEDOUT' };

  it('gives up on a server that takes the connection and says nothing', async () => {
    proxy.freeze();
    const client = new PatientClient(clientConfigOf(proxy.url), { connectMs: 100 });
    await expect(client.use(() => Promise.resolve())).rejects.toMatchObject(silence);
  });

  it('gives up on a server that goes silent, and can be used again', async () => {
    const client = new PatientClient(clientConfigOf(proxy.url), { replyMs: 100 });
    const work = client.use(async (send) => {
      await send('select 1');
      proxy.freeze();
      await send('select 2');
    });
    await expect(work).rejects.toMatchObject(silence);
    proxy.thaw();
    await client.use((send) => send('select 3'));
  });

  it('is cut off for good', async () => {
    const client = new PatientClient(clientConfigOf(proxy.url));
    const work = client.use((send) => {
      client.abandon();
      return send('select pg_sleep(60)');
    });
    await expect(work).rejects.toMatchObject({ code: 'STORE_FAULT' });
    await expect(client.use((send) => send('select 1'))).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  });
});
