/** A class with decorators as the schema of a payload, whoever compiled it. */
import 'reflect-metadata';
import { Type } from 'class-transformer';
import { IsDate, IsString, ValidateNested } from 'class-validator';
import { defineJob } from 'nestjs-ratchet';
import { classSchema } from 'nestjs-ratchet/class-validator';

class Item {
  @IsString() sku!: string;
}

class Order {
  @Type(() => Item) @ValidateNested({ each: true }) items!: Item[];
  @Type(() => Date) @IsDate() due!: Date;
  size(): number {
    return this.items.length;
  }
}

const { schema } = defineJob('order', { schema: classSchema(Order) });
const validate = async (value: unknown) => schema!['~standard'].validate(value);
const good = await validate({ items: [{ sku: 'a' }], due: '2030-01-01T00:00:00Z' });
const bad = await validate({ items: [{ sku: 'a' }, {}], due: '2030-01-01T00:00:00Z' });
const order = (good as { value: Order }).value;
console.log(order.size(), order.due.getUTCFullYear(), bad.issues?.[0]?.path?.map(String).join('.'));
