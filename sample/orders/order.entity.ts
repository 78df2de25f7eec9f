import { Column, Entity, PrimaryColumn } from 'typeorm';
import { SHOP_SCHEMA } from '../schemas.js';

/** An order as the shop keeps it. */
@Entity({ schema: SHOP_SCHEMA, name: 'order' })
export class Order {
  @PrimaryColumn('text')
  number!: string;

  @Column('text')
  customer!: string;

  /** Two letters: decides the tax. */
  @Column('text')
  country!: string;

  @Column('date')
  orderedOn!: string;

  /** As the customer's spreadsheet has it: `2 x Espresso beans 1 kg @ 18.90; 1 x Burr grinder @ 129.00`. */
  @Column('text')
  items!: string;

  /** The job that builds the invoice. */
  @Column('uuid')
  invoiceJobId!: string;
}
