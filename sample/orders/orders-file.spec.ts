import { describe, expect, it } from '@jest/globals';
import { parseItems } from './order-items.js';
import { readOrders } from './orders-file.js';

describe('the orders file', () => {
  it('ships sixty orders, one of which nobody can read', async () => {
    const orders = await readOrders('sample/data/orders.csv');
    expect(orders).toHaveLength(60);
    expect(new Set(orders.map((order) => order.number)).size).toBe(60);
    const unreadable = orders.filter(({ items }) => {
      try {
        return parseItems(items).length === 0;
      } catch {
        return true;
      }
    });
    expect(unreadable.map((order) => order.number)).toEqual(['A-1042']);
  });

  it('reads quoted fields', async () => {
    const orders = await readOrders('sample/data/orders.csv');
    expect(orders.find((order) => order.number === 'A-1009')).toEqual({
      number: 'A-1009',
      customer: 'Oficina "O Grão", Lda.',
      country: 'PT',
      orderedOn: '2026-03-05',
      items: '1 x Cleaning tablets @ 9.95; 2 x Filter beans 250 g @ 7.40; 6 x Digital scale @ 34.90',
    });
  });
});

describe('item lines', () => {
  it('are quantity, article and price', () => {
    expect(parseItems('2 x Espresso beans 1 kg @ 18.90; 1 x Burr grinder @ 129.00')).toEqual([
      { quantity: 2, article: 'Espresso beans 1 kg', unitCents: 1890 },
      { quantity: 1, article: 'Burr grinder', unitCents: 12900 },
    ]);
  });

  it('are named when they cannot be read', () => {
    expect(() => parseItems('2 x Tamper 58 mm @ 27.30; three x Paper filters @ 4.50')).toThrow(
      '"three x Paper filters @ 4.50" is no item line',
    );
  });
});
