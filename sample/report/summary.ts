import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { InvoiceFiles } from '../invoices/invoice-files.js';
import { euro } from '../invoices/invoice.js';
import { Order } from '../orders/order.entity.js';
import { InvoiceJobReader } from './invoice-job-reader.js';
import { Terminal } from './terminal.js';

/** The table at the end. Every figure comes from the database or the folder, so it covers earlier, killed starts too. */
@Injectable()
export class Summary {
  constructor(
    @InjectRepository(Order) private readonly orders: Repository<Order>,
    private readonly reader: InvoiceJobReader,
    private readonly files: InvoiceFiles,
    private readonly terminal: Terminal,
  ) {}

  /** Prints it. True when every order has its invoice, in the database and in the folder. */
  async print(): Promise<boolean> {
    const [orders, jobs, outcomes, files] = await Promise.all([
      this.orders.count(),
      this.reader.jobs(),
      this.reader.executions(),
      this.files.list(),
    ]);
    const built = jobs.flatMap((job) => (job.status === 'succeeded' && job.result ? [job.result] : []));
    const stillFailed = jobs.filter((job) => job.status === 'failed').length;
    const ended = (outcome: string): number => outcomes.get(outcome) ?? 0;
    const executions = [...outcomes.values()].reduce((sum, count) => sum + count, 0);

    this.#row('orders', orders);
    this.#row('invoice jobs', jobs.length);
    this.#row('executions', executions);
    this.#row('  succeeded', ended('succeeded'));
    this.#row('  failed and retried', ended('retried'));
    this.#row('  failed for good', ended('failed'));
    if (ended('crashed') > 0) this.#row('  cut off by a kill', ended('crashed'));
    if (ended('released') > 0) this.#row('  given back by a stop', ended('released'));
    this.#row('redriven', ended('failed') - stillFailed);
    this.#row('invoice files', files.length);
    this.#row('invoiced, EUR', euro(built.reduce((sum, invoice) => sum + invoice.totalCents, 0)));
    return built.length === orders && built.every(({ file }) => files.includes(file));
  }

  #row(label: string, value: number | string): void {
    this.terminal.line(`  ${label.padEnd(24)}${String(value).padStart(12)}`);
  }
}
