import 'reflect-metadata';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { type StandardSchemaV1 } from '@standard-schema/spec';
import { Transform, Type } from 'class-transformer';
import {
  Allow,
  ArrayMinSize,
  IsDate,
  IsEmail,
  IsIn,
  IsInt,
  IsOptional,
  IsString,
  Min,
  registerDecorator,
  ValidateNested,
} from 'class-validator';
import { classSchema, type ClassSchemaOptions } from 'nestjs-ratchet/class-validator';
import { loadPeers } from '../../lib/class-validator/peers.js';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type JobDefinition } from '../../lib/jobs/job-definition.js';
import { decodePayload, encodePayload } from '../../lib/jobs/payload-codec.js';

/** An asynchronous validator, as one that asks a database. */
function IsFree(): PropertyDecorator {
  return (target, propertyName) => {
    registerDecorator({
      name: 'isFree',
      target: target.constructor,
      propertyName: String(propertyName),
      validator: {
        validate: async (value: unknown) => Promise.resolve(value !== 'taken'),
        defaultMessage: () => 'sku is taken',
      },
    });
  };
}

class Item {
  @IsFree() @IsString() sku!: string;
  @Min(0) @IsInt() price!: number;
}

class Order {
  @IsEmail() email!: string;
  @Type(() => Item) @ValidateNested({ each: true }) @ArrayMinSize(1) items!: Item[];
  @Type(() => Item) @ValidateNested() @IsOptional() gift?: Item;
  @Type(() => Date) @IsDate() due!: Date;
  @IsString({ each: true }) tags: string[] = [];

  total(): number {
    return this.items.reduce((sum, { price }) => sum + price, 0);
  }
}

const PlaceOrder: JobDefinition = defineJob('order.place', { schema: classSchema(Order) });
const plain = {
  email: 'ada@example.org',
  items: [
    { sku: 'a', price: 2 },
    { sku: 'b', price: 3 },
  ],
  due: '2030-01-02T03:04:05.678Z',
  tags: ['new'],
};

const encode = (definition: JobDefinition, value: unknown): Promise<string> =>
  encodePayload(definition, value, 1_000_000);
const trip = async (definition: JobDefinition, value: unknown): Promise<unknown> =>
  decodePayload(definition, JSON.parse(await encode(definition, value)), definition.version);
const refusal = async (definition: JobDefinition, value: unknown): Promise<unknown> =>
  encode(definition, value).then(
    () => 'taken',
    (error: unknown) => error,
  );

async function ask(schema: StandardSchemaV1, value: unknown): Promise<StandardSchemaV1.Result<unknown>> {
  return await schema['~standard'].validate(value);
}

describe('classSchema', () => {
  it('stores the plain shape and hands over an instance, nested ones and methods too', async () => {
    expect(JSON.parse(await encode(PlaceOrder, plain))).toEqual(plain);
    const order = (await trip(PlaceOrder, plain)) as Order;
    expect(order).toBeInstanceOf(Order);
    expect(order.items[1]).toBeInstanceOf(Item);
    expect(order.total()).toBe(5);
  });

  it('takes a Date as its text, or as a Date that is stored as text', async () => {
    const due = new Date(plain.due);
    for (const given of [plain, { ...plain, due }]) {
      expect(await trip(PlaceOrder, given)).toMatchObject({ due });
    }
    expect(JSON.parse(await encode(PlaceOrder, { ...plain, due }))).toEqual(plain);
    expect(await refusal(PlaceOrder, { ...plain, due: 'tomorrow' })).toMatchObject({
      issues: [{ path: 'payload.due' }],
    });
  });

  it('names the mend when a Date has no @Type', async () => {
    class Dated {
      @IsDate() due!: Date;
    }
    const Remind: JobDefinition = defineJob('remind', { schema: classSchema(Dated) });
    await expect(encode(Remind, { due: new Date(0) })).rejects.toThrow('@Type(() => Date) in a class');
  });

  it('takes an instance of the class', async () => {
    const order = (await trip(PlaceOrder, plain)) as Order;
    expect(await trip(PlaceOrder, order)).toEqual(order);
  });

  it('lets a default of the class stand where nothing was given', async () => {
    const { email, items, due } = plain;
    expect(await trip(PlaceOrder, { email, items, due })).toMatchObject({ tags: [] });
    expect(JSON.parse(await encode(PlaceOrder, { email, items, due }))).not.toHaveProperty('tags');
  });

  it('runs a transform on what was stored, never on its own result', async () => {
    class Priced {
      @IsInt() @Transform(({ value }) => Number(value) * 100) cents!: number;
    }
    const schema = classSchema<Priced, { cents: string }>(Priced);
    const Price: JobDefinition = defineJob('price', { schema });
    expect(await encode(Price, { cents: '3' })).toBe('{"cents":"3"}');
    expect(await trip(Price, { cents: '3' })).toEqual({ cents: 300 });
  });

  it('says where each fault is', async () => {
    const faulty = {
      email: 'ada',
      items: [
        { sku: 'a', price: 1 },
        { sku: 7, price: -1 },
        { sku: 'taken', price: 1 },
      ],
      gift: { sku: 'b', price: 0.5 },
      due: plain.due,
      tags: ['new', 1],
    };
    const error = (await refusal(PlaceOrder, faulty)) as { issues: { path: string; message: string }[] };
    expect(error).toMatchObject({ code: 'PAYLOAD_INVALID' });
    expect(error.issues.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { path: 'payload.email', message: 'email must be an email' },
      { path: 'payload.gift.price', message: 'price must be an integer number' },
      { path: 'payload.items[1].price', message: 'price must not be less than 0' },
      { path: 'payload.items[1].sku', message: 'sku must be a string' },
      { path: 'payload.items[2].sku', message: 'sku is taken' },
      { path: 'payload.tags', message: 'each value in tags must be a string' },
    ]);
  });

  it('names the place of what is no object at all', async () => {
    expect(await refusal(PlaceOrder, { ...plain, items: [null, 5] })).toMatchObject({
      issues: [{ path: 'payload.items[0]' }, { path: 'payload.items[1]' }],
    });
  });

  it.each([[null], [undefined], ['x'], [7], [true], [[]], [[plain]]])(
    'refuses %p as a payload',
    async (value) => {
      expect(await refusal(PlaceOrder, value)).toMatchObject({
        code: 'PAYLOAD_INVALID',
        issues: [{ path: 'payload', message: 'must be an object, the plain shape of Order' }],
      });
    },
  );

  it('refuses a cycle, and what throws when it is read', async () => {
    const cycle: Record<string, unknown> = { ...plain };
    cycle['items'] = [cycle];
    expect(await refusal(PlaceOrder, cycle)).toMatchObject({ code: expect.stringContaining('PAYLOAD_') });
    const trap = {
      ...plain,
      get email(): string {
        throw new Error('trap');
      },
    };
    expect(await refusal(PlaceOrder, trap)).toMatchObject({ code: 'PAYLOAD_INVALID' });
  });

  it('says so when a transform throws', async () => {
    class Broken {
      @Allow()
      @Transform(() => {
        throw new Error('no rate today');
      })
      rate!: number;
    }
    const Convert: JobDefinition = defineJob('convert', { schema: classSchema(Broken) });
    await expect(encode(Convert, { rate: 1 })).rejects.toThrow('the schema threw: no rate today');
  });

  it('checks what a superclass decorated', async () => {
    class Express extends Order {
      @IsIn(['air', 'road']) by!: string;
    }
    const result = await ask(classSchema(Express), { ...plain, email: 'ada', by: 'sea' });
    expect(result.issues?.map(({ path }) => path)).toEqual(expect.arrayContaining([['by'], ['email']]));
  });

  it('gives no prototype away', async () => {
    const given: unknown = JSON.parse(`{"__proto__":{"polluted":true},${JSON.stringify(plain).slice(1)}`);
    const result = await ask(classSchema(Order), given);
    expect(result).not.toHaveProperty('value.polluted');
    expect({}).not.toHaveProperty('polluted');
  });
});

describe('the options of classSchema', () => {
  const extra = { ...plain, surprise: 1 };

  it('let pass what no decorator names, unless they say otherwise', async () => {
    expect(await ask(classSchema(Order), extra)).toHaveProperty('value.surprise', 1);
    const stripped = await ask(classSchema(Order, { whitelist: true }), extra);
    expect(stripped).toHaveProperty('value');
    expect(stripped).not.toHaveProperty('value.surprise');
    const strict = classSchema(Order, { whitelist: true, forbidNonWhitelisted: true });
    expect(await ask(strict, extra)).toEqual({
      issues: [{ message: 'property surprise should not exist', path: ['surprise'] }],
    });
    const nested = await ask(strict, { ...plain, items: [{ sku: 'a', price: 1, note: 'x' }] });
    expect(nested.issues).toEqual([
      { message: 'property note should not exist', path: ['items', 0, 'note'] },
    ]);
  });

  it('refuse items without @Type, of which nothing is known', async () => {
    class Bag {
      @ValidateNested({ each: true }) items!: Item[];
    }
    const bag = { items: [{ sku: 1 }] };
    const result = await ask(classSchema(Bag), bag);
    expect(result.issues?.[0]).toMatchObject({ path: ['items', 0] });
    expect(await ask(classSchema(Bag, { forbidUnknownValues: false }), bag)).toHaveProperty('value');
  });

  it('choose groups and stop at the first error', async () => {
    class Grouped {
      @IsInt({ groups: ['strict'] }) @Min(5, { groups: ['strict'] }) n!: unknown;
      @IsString({ groups: ['lax'] }) text!: unknown;
    }
    const value = { n: 'x', text: 'y' };
    expect(await ask(classSchema(Grouped, { groups: ['lax'] }), value)).toHaveProperty('value');
    const all = await ask(classSchema(Grouped, { groups: ['strict'] }), value);
    expect(all.issues).toHaveLength(2);
    const first = await ask(classSchema(Grouped, { groups: ['strict'], stopAtFirstError: true }), value);
    expect(first.issues).toHaveLength(1);
  });

  it('are passed on to class-transformer', async () => {
    const schema = classSchema(Item, { transformOptions: { enableImplicitConversion: true } });
    expect(await ask(schema, { sku: 5, price: '7' })).toEqual({ value: { sku: '5', price: 7 } });
  });

  it.each([
    [null, 'options'],
    [[], 'options'],
    ['whitelist', 'options'],
    [{ whitlist: true }, 'whitlist'],
    [{ toString: true }, 'toString'],
    [{ validationError: { value: false } }, 'validationError'],
    [{ whitelist: 'yes' }, 'whitelist'],
    [{ groups: 'a' }, 'groups'],
    [{ groups: [1] }, 'groups'],
    [{ transformOptions: null }, 'transformOptions'],
    [{ forbidNonWhitelisted: true }, 'forbidNonWhitelisted'],
  ])('are refused by name: %p', (options, key) => {
    expect(() => classSchema(Order, options as unknown as ClassSchemaOptions)).toThrow(
      expect.objectContaining({ code: 'INVALID_CLASS_SCHEMA', key }),
    );
  });

  it('may be undefined', () => {
    expect(() => classSchema(Order, { whitelist: undefined } as object)).not.toThrow();
  });
});

describe('a class that cannot be a schema', () => {
  it.each([[undefined], [null], ['Order'], [{}], [() => plain]])('%p is none', (dto) => {
    expect(() => classSchema(dto as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_CLASS_SCHEMA', key: 'class' }),
    );
  });

  it('is refused where it is made when no property has a decorator', () => {
    class Bare {
      id!: string;
    }
    expect(() => classSchema(Bare)).toThrow('a decorator of class-validator on at least one property');
  });
});

describe('the packages that it needs', () => {
  it('are imported by this folder only: who has none of them has typings without them', () => {
    const lib = join(import.meta.dirname, '../../lib');
    const importing = readdirSync(lib, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .filter((file) => /from 'class-(validator|transformer)'/.test(readFileSync(join(lib, file), 'utf8')));
    expect(importing.length).toBeGreaterThan(0);
    expect(importing.filter((file) => !file.startsWith('class-validator'))).toEqual([]);
  });

  const missing = (name: string): never => {
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
  };

  it('are named with the command that installs them', () => {
    expect(() => loadPeers([missing, missing])).toThrow(
      'CLASS_SCHEMA_PACKAGE_MISSING: classSchema: the package class-validator is not installed; ' +
        'npm install class-validator class-transformer',
    );
    const onlyOne = (name: string): unknown => (name === 'class-validator' ? {} : missing(name));
    expect(() => loadPeers([onlyOne])).toThrow('the package class-transformer is not installed');
  });

  it('are looked for where the process runs as well', () => {
    const found = {};
    expect(loadPeers([missing, () => found]).validator).toBe(found);
  });

  it('are not called missing when they are broken', () => {
    const broken = (): never => {
      throw new Error('a syntax error');
    };
    expect(() => loadPeers([broken])).toThrow(
      expect.objectContaining({
        message: expect.stringContaining('could not be loaded'),
        cause: expect.anything(),
      }),
    );
  });
});
