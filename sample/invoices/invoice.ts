import { type OrderItem } from '../orders/order-items.js';
import { type Order } from '../orders/order.entity.js';

export interface Invoice {
  readonly number: string;
  readonly order: Order;
  readonly items: readonly OrderItem[];
  readonly netCents: number;
  readonly taxPercent: number;
  readonly taxCents: number;
  readonly totalCents: number;
}

/** Depends on nothing but the order and the rate: building an invoice twice gives the same invoice. */
export function invoiceFor(order: Order, items: readonly OrderItem[], taxPercent: number): Invoice {
  const netCents = items.reduce((sum, item) => sum + item.quantity * item.unitCents, 0);
  const taxCents = Math.round((netCents * taxPercent) / 100);
  return {
    number: `INV-${order.number}`,
    order,
    items,
    netCents,
    taxPercent,
    taxCents,
    totalCents: netCents + taxCents,
  };
}

export function renderInvoice(invoice: Invoice): string {
  const { order } = invoice;
  const line = '-'.repeat(60);
  const sum = (label: string, cents: number): string => label.padEnd(46) + euro(cents).padStart(14);
  return [
    `INVOICE ${invoice.number}`,
    '',
    `Customer  ${order.customer} (${order.country})`,
    `Order     ${order.number} of ${order.orderedOn}`,
    line,
    ...invoice.items.map((item) =>
      sum(`${item.quantity} x ${item.article} @ ${euro(item.unitCents)}`, item.quantity * item.unitCents),
    ),
    line,
    sum('Net', invoice.netCents),
    sum(`Tax ${invoice.taxPercent} %`, invoice.taxCents),
    sum('Total EUR', invoice.totalCents),
    '',
  ].join('\n');
}

/** `1234.50` of 123450 cents. */
export function euro(cents: number): string {
  return (cents / 100).toFixed(2);
}
