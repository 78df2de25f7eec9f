import { afterEach, describe, expect, it } from '@jest/globals';
import { getRepositoryToken } from '@nestjs/typeorm';
import { Test, type TestingModule } from '@nestjs/testing';
import { JobScheduler } from 'nestjs-ratchet';
import { RatchetTester, RatchetTestingModule } from 'nestjs-ratchet/testing';
import { Order } from '../orders/order.entity.js';
import { InvoiceFiles } from './invoice-files.js';
import { InvoiceHandler } from './invoice.handler.js';
import { BuildInvoice } from './invoice.jobs.js';
import { TaxService } from './tax-service.js';

/** No database and no waiting: `nestjs-ratchet/testing` runs the job when the test says so. */
describe('the job that builds an invoice', () => {
  const order = Object.assign(new Order(), {
    number: 'A-1',
    customer: 'Ana Ferreira',
    country: 'PT',
    orderedOn: '2026-03-02',
    items: '2 x Digital scale @ 34.90',
  });
  const written = new Map<string, string>();
  let app: TestingModule;
  let tester: RatchetTester;
  let taxAnswers: (() => number)[];

  const down = (): never => {
    throw new Error('503');
  };

  async function enqueue(changes: Partial<Order> = {}): Promise<string> {
    written.clear();
    app = await Test.createTestingModule({
      imports: [RatchetTestingModule.forRoot()],
      providers: [
        InvoiceHandler,
        {
          provide: getRepositoryToken(Order),
          useValue: { findOneBy: () => Promise.resolve(Object.assign(new Order(), order, changes)) },
        },
        { provide: TaxService, useValue: { rateOf: async () => (taxAnswers.shift() ?? down)() } },
        {
          provide: InvoiceFiles,
          useValue: {
            write: (name: string, content: string) => {
              written.set(name, content);
              return Promise.resolve(name);
            },
          },
        },
      ],
    }).compile();
    tester = RatchetTester.of(app);
    const job = await app.get(JobScheduler).enqueue(BuildInvoice, { orderNumber: order.number });
    return job.id;
  }

  afterEach(() => app.close());

  it('writes the file and returns name and total', async () => {
    taxAnswers = [() => 23];
    await enqueue();
    expect(await tester.runNext(BuildInvoice)).toMatchObject({
      outcome: 'succeeded',
      result: { file: 'INV-A-1.txt', totalCents: 8585 },
    });
    expect(written.get('INV-A-1.txt')).toContain('Total EUR');
  });

  it('is tried again when the tax service is down, after its backoff', async () => {
    taxAnswers = [down, () => 23];
    await enqueue();
    expect(await tester.runNext()).toMatchObject({ outcome: 'retried', execution: 1 });
    await tester.advance('1s');
    expect(await tester.runNext()).toMatchObject({ outcome: 'succeeded', execution: 2 });
  });

  it('goes to the dead letter when it stays down', async () => {
    taxAnswers = [];
    const id = await enqueue();
    const ran = await tester.drain({ within: '1h' });
    expect(ran.map(({ outcome }) => outcome)).toEqual([...Array<string>(8).fill('retried'), 'failed']);
    expect(await app.get(JobScheduler).get(id)).toMatchObject({ status: 'failed', failures: 9 });
  });

  it('does not retry what nobody can read, and works when it is mended and redriven', async () => {
    taxAnswers = [() => 23];
    const changes = { items: 'two x Digital scale @ 34.90' };
    const id = await enqueue(changes);
    expect(await tester.drain({ within: '1h' })).toMatchObject([{ outcome: 'failed', execution: 1 }]);

    changes.items = order.items;
    await app.get(JobScheduler).redrive(id);
    expect(await tester.runNext()).toMatchObject({ outcome: 'succeeded', result: { totalCents: 8585 } });
  });
});
