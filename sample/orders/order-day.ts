import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { JobScheduler } from 'nestjs-ratchet';
import { Repository } from 'typeorm';
import { InvoiceJobReader } from '../report/invoice-job-reader.js';
import { Progress } from '../report/progress.js';
import { Terminal } from '../report/terminal.js';
import { OrderDesk } from './order-desk.js';
import { OrderImport } from './order-import.js';
import { Order } from './order.entity.js';

/** The story that the sample tells: import, invoice, mend what could not be read, redrive it. */
@Injectable()
export class OrderDay {
  constructor(
    @InjectRepository(Order) private readonly orders: Repository<Order>,
    private readonly orderImport: OrderImport,
    private readonly desk: OrderDesk,
    private readonly scheduler: JobScheduler,
    private readonly reader: InvoiceJobReader,
    private readonly progress: Progress,
    private readonly terminal: Terminal,
  ) {}

  /** Each step finds out from the database what is left to do, so a start after a kill just goes on. */
  async run(stop: AbortSignal): Promise<void> {
    const { orders, created } = await this.orderImport.run();
    this.terminal.line(
      `${orders} orders in the file, ${created} of them new. One job each builds its invoice.`,
    );
    const jobs = await this.reader.jobs();
    const done = jobs.filter((job) => job.status === 'succeeded').length;
    if (done === jobs.length) {
      this.terminal.line('Everything is already done. To start over: npm start -- --reset');
      return;
    }
    if (done > 0) this.terminal.line(`${done} invoices are there from earlier starts.`);
    await this.progress.watch(stop);
    if (!stop.aborted && (await this.#redriveDeadLetters()) > 0) await this.progress.watch(stop);
  }

  async #redriveDeadLetters(): Promise<number> {
    const dead = (await this.reader.jobs()).filter((job) => job.status === 'failed');
    for (const job of dead) {
      const order = await this.orders.findOneByOrFail({ number: job.orderNumber });
      const mended = await this.desk.mend(order);
      await this.scheduler.redrive(job.id);
      this.terminal.line(`  order ${order.number}: ${mended ? 'mended, ' : ''}redriven from the dead letter`);
    }
    return dead.length;
  }
}
