import { Injectable } from '@nestjs/common';
import { JobScheduler } from 'nestjs-ratchet';
import { DataSource } from 'typeorm';
import { BuildInvoice } from '../invoices/invoice.jobs.js';
import { SampleOptions } from '../sample-options.js';
import { Order } from './order.entity.js';
import { readOrders } from './orders-file.js';

/** Takes the orders of the CSV file into the shop's database, and asks for an invoice for each. */
@Injectable()
export class OrderImport {
  constructor(
    private readonly dataSource: DataSource,
    private readonly scheduler: JobScheduler,
    private readonly options: SampleOptions,
  ) {}

  /** How many orders were new. Orders of an earlier start, killed or not, are left as they are. */
  async run(): Promise<{ orders: number; created: number }> {
    const rows = await readOrders(this.options.ordersFile);
    let created = 0;
    for (const row of rows) {
      // The order and its job are committed together, or not at all: a kill between the two lines loses nothing.
      await this.dataSource.transaction(async (tx) => {
        const job = await this.scheduler.enqueue(
          BuildInvoice,
          { orderNumber: row.number },
          {
            transaction: tx,
            // A second import of the same order finds the first job, long after that has finished too.
            idempotencyKey: { key: `invoice:${row.number}`, expiresIn: '365d' },
          },
        );
        if (!job.created) return;
        await tx.save(Order, { ...row, invoiceJobId: job.id });
        created += 1;
      });
    }
    return { orders: rows.length, created };
  }
}
