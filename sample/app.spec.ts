import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { JobScheduler } from 'nestjs-ratchet';
import { manualRatchet, RatchetTester } from 'nestjs-ratchet/testing';
import { DataSource } from 'typeorm';
import { createTestDatabase, type TestDatabase } from '../test/support/database.js';
import { AppModule } from './app.module.js';
import { BuildInvoice } from './invoices/invoice.jobs.js';
import { OrderDesk } from './orders/order-desk.js';
import { OrderImport } from './orders/order-import.js';
import { Order } from './orders/order.entity.js';
import { Summary } from './report/summary.js';
import { Terminal } from './report/terminal.js';
import { SampleOptions } from './sample-options.js';

/** The whole app on a real database; only the engine waits for the test to say when. */
describe('the shop', () => {
  let database: TestDatabase;
  let folder: string;
  let app: TestingModule;

  async function open(ordersFile = 'sample/data/orders.csv'): Promise<void> {
    const options = new SampleOptions(false, 0, '', ordersFile, join(folder, 'invoices'));
    app = await manualRatchet(Test.createTestingModule({ imports: [AppModule.for(database.url, options)] }))
      .overrideProvider(Terminal)
      .useValue({ line: () => {}, status: () => {} })
      .compile();
    await app.init();
  }

  beforeEach(async () => {
    database = await createTestDatabase();
    await database.query('create schema sample_shop');
    folder = await mkdtemp(join(tmpdir(), 'ratchet-shop-'));
  });

  afterEach(async () => {
    await app.close();
    await database.drop();
    await rm(folder, { recursive: true, force: true });
  });

  it('invoices every order once, however often the file is imported', async () => {
    await open();
    const tester = RatchetTester.of(app);
    expect(await app.get(OrderImport).run()).toEqual({ orders: 60, created: 60 });
    expect(await tester.enqueued(BuildInvoice)).toHaveLength(60);

    const ran = await tester.drain({ within: '1h' });
    const failed = ran.filter(({ outcome }) => outcome === 'failed');
    expect(failed).toMatchObject([{ payload: { orderNumber: 'A-1042' }, execution: 1 }]);
    expect(ran.filter(({ outcome }) => outcome === 'retried').length).toBeGreaterThan(0);
    expect(ran.filter(({ outcome }) => outcome === 'succeeded')).toHaveLength(59);

    const orders = app.get(DataSource).getRepository(Order);
    const broken = await orders.findOneByOrFail({ number: 'A-1042' });
    expect(await app.get(OrderDesk).mend(broken)).toBe(true);
    await app.get(JobScheduler).redrive(broken.invoiceJobId);
    await tester.drain({ within: '1h' });
    expect(await app.get(Summary).print()).toBe(true);
    expect(await readdir(join(folder, 'invoices'))).toHaveLength(60);

    expect(await app.get(OrderImport).run()).toEqual({ orders: 60, created: 0 });
    expect(await tester.drain({ within: '1h' })).toEqual([]);
  });

  it('keeps neither the order nor its job when the order cannot be saved', async () => {
    const file = join(folder, 'orders.csv');
    await writeFile(
      file,
      [
        'number,customer,country,ordered_on,items',
        'B-1,Ana,PT,2026-03-02,1 x Tamper @ 27.30',
        'B-2,Rui,PT,no date,1 x Tamper @ 27.30',
      ].join('\n'),
    );
    await open(file);
    await expect(app.get(OrderImport).run()).rejects.toThrow('no date');

    const jobs = await RatchetTester.of(app).enqueued(BuildInvoice);
    expect(jobs.map(({ payload }) => payload.orderNumber)).toEqual(['B-1']);
    const orders = await app.get(DataSource).getRepository(Order).find();
    expect(orders.map(({ number, invoiceJobId }) => [number, invoiceJobId])).toEqual([['B-1', jobs[0]?.id]]);
  });
});
