/** One line of an order. Money is whole cents: floating point and invoices do not mix. */
export interface OrderItem {
  readonly quantity: number;
  readonly article: string;
  readonly unitCents: number;
}

/** Reads `2 x Espresso beans 1 kg @ 18.90; 1 x Burr grinder @ 129.00`. Throws, naming the line that it cannot read. */
export function parseItems(text: string): OrderItem[] {
  return text.split(';').map((line) => {
    const match = /^(\d+) x (.+) @ (\d+)\.(\d\d)$/.exec(line.trim());
    if (!match) throw new Error(`"${line.trim()}" is no item line (expected: 2 x Article @ 9.99)`);
    const [, quantity, article = '', whole, cents] = match;
    return { quantity: Number(quantity), article, unitCents: Number(whole) * 100 + Number(cents) };
  });
}
