import { readFile } from 'node:fs/promises';
import { type Order } from './order.entity.js';

/** A row of orders.csv. */
export type OrderRow = Omit<Order, 'invoiceJobId'>;

/** Reads the CSV file of orders. Fields may be quoted, and hold commas and doubled quotes then. */
export async function readOrders(file: string): Promise<OrderRow[]> {
  const [, ...lines] = (await readFile(file, 'utf8')).trim().split(/\r?\n/);
  return lines.map((line) => {
    const [number = '', customer = '', country = '', orderedOn = '', items = ''] = splitLine(line);
    return { number, customer, country, orderedOn, items };
  });
}

function splitLine(line: string): string[] {
  const fields = line.match(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g) ?? [];
  return fields.map((field) =>
    field
      .replace(/,$/, '')
      .replace(/^"(.*)"$/, '$1')
      .replaceAll('""', '"'),
  );
}
