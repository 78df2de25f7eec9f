import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Order } from './order.entity.js';

/** Quantities that customers spell out. */
const WORDS: Record<string, string> = { one: '1', two: '2', three: '3', four: '4', five: '5', six: '6' };

/** Stands for the person who corrects an order that the machine could not read. */
@Injectable()
export class OrderDesk {
  constructor(@InjectRepository(Order) private readonly orders: Repository<Order>) {}

  /** Writes quantities as digits. True when there was something to correct. */
  async mend(order: Order): Promise<boolean> {
    const items = order.items.replace(/(^|; *)([a-z]+) x /g, (line, start: string, word: string) => {
      const digits = WORDS[word];
      return digits === undefined ? line : `${start}${digits} x `;
    });
    if (items === order.items) return false;
    await this.orders.update(order.number, { items });
    return true;
  }
}
