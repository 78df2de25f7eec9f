import { describe, expect, it } from '@jest/globals';
import { invoiceFor, renderInvoice } from './invoice.js';

const order = {
  number: 'A-1',
  customer: 'Ana Ferreira',
  country: 'PT',
  orderedOn: '2026-03-02',
  items: '',
  invoiceJobId: '',
};

describe('an invoice', () => {
  const invoice = invoiceFor(
    order,
    [
      { quantity: 3, article: 'Filter beans 250 g', unitCents: 740 },
      { quantity: 1, article: 'Digital scale', unitCents: 3490 },
    ],
    23,
  );

  it('adds up in whole cents', () => {
    expect(invoice).toMatchObject({ number: 'INV-A-1', netCents: 5710, taxCents: 1313, totalCents: 7023 });
  });

  it('is text that a customer can read', () => {
    expect(renderInvoice(invoice)).toBe(
      [
        'INVOICE INV-A-1',
        '',
        'Customer  Ana Ferreira (PT)',
        'Order     A-1 of 2026-03-02',
        '------------------------------------------------------------',
        '3 x Filter beans 250 g @ 7.40                          22.20',
        '1 x Digital scale @ 34.90                              34.90',
        '------------------------------------------------------------',
        'Net                                                    57.10',
        'Tax 23 %                                               13.13',
        'Total EUR                                              70.23',
        '',
      ].join('\n'),
    );
  });
});
