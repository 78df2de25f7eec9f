import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Job, JobContext, UnrecoverableError, type PayloadOf } from 'nestjs-ratchet';
import { Repository } from 'typeorm';
import { parseItems, type OrderItem } from '../orders/order-items.js';
import { Order } from '../orders/order.entity.js';
import { InvoiceFiles } from './invoice-files.js';
import { invoiceFor, renderInvoice } from './invoice.js';
import { BuildInvoice, type BuiltInvoice } from './invoice.jobs.js';
import { TaxService } from './tax-service.js';

/** Builds invoice files. */
@Injectable()
export class InvoiceHandler {
  constructor(
    @InjectRepository(Order) private readonly orders: Repository<Order>,
    private readonly taxes: TaxService,
    private readonly files: InvoiceFiles,
  ) {}

  /**
   * May run twice for one order (a kill after the file was written, before that was recorded), so it is written to do no
   * harm then: the same order gives the same file.
   */
  @Job(BuildInvoice)
  async build({ orderNumber }: PayloadOf<typeof BuildInvoice>, ctx: JobContext): Promise<BuiltInvoice> {
    const order = await this.orders.findOneBy({ number: orderNumber });
    if (!order) throw new UnrecoverableError(`there is no order ${orderNumber}`);
    const items = readItems(order);
    const rate = await this.taxes.rateOf(order.country, ctx.signal);
    const invoice = invoiceFor(order, items, rate);
    const file = await this.files.write(`${invoice.number}.txt`, renderInvoice(invoice));
    return { file, totalCents: invoice.totalCents };
  }
}

/** Text that nobody can read today will not be readable in a second: straight to the dead letter, no retries. */
function readItems(order: Order): OrderItem[] {
  try {
    return parseItems(order.items);
  } catch (error) {
    throw new UnrecoverableError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}
