import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { JobScheduler, RatchetRuntime } from 'nestjs-ratchet';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { snippetsOf, writeSnippets } from './markdown.js';

interface QuickStart {
  AppModule: Type;
  OrderService: Type<{ place(order: object): Promise<string> }>;
  Mailer: Type<{ sent: string[]; sendInvoice(orderId: string, signal: AbortSignal): Promise<void> }>;
}

describe('the quick start of README', () => {
  const files = writeSnippets(snippetsOf('README.md', 'ts'), 'quick-start');
  let database: TestDatabase;
  let code: QuickStart;

  const load = async (file: string): Promise<object> => {
    const path = files.find(({ fileName }) => fileName === file)?.path ?? join('missing', file);
    return (await import(pathToFileURL(path).href)) as object;
  };

  beforeAll(async () => {
    database = await createTestDatabase();
    const before = process.env['DATABASE_URL'];
    process.env['DATABASE_URL'] = database.url;
    try {
      code = Object.assign(
        {},
        await load('app.module.ts'),
        await load('order.service.ts'),
        await load('mailer.ts'),
      ) as QuickStart;
    } finally {
      if (before === undefined) delete process.env['DATABASE_URL'];
      else process.env['DATABASE_URL'] = before;
    }
  });

  afterAll(() => database.drop());

  it('sends the invoice of a placed order, once', async () => {
    const app = await NestFactory.createApplicationContext(code.AppModule, {
      logger: ['error', 'fatal'],
      abortOnError: false,
    });
    try {
      const mailer = app.get(code.Mailer);
      const sent = new Promise<string>((resolve) => {
        const send = mailer.sendInvoice.bind(mailer);
        mailer.sendInvoice = async (orderId, signal) => {
          await send(orderId, signal);
          resolve(orderId);
        };
      });
      const orders = app.get(code.OrderService);
      const order = { id: '4711', customer: 'Ana' };
      const { Order } = (await load('order.entity.ts')) as { Order: Type<object> };
      const id = await orders.place(Object.assign(new Order(), order));
      expect(await sent).toBe('4711');
      expect(await orders.place(Object.assign(new Order(), order))).toBe(id);

      await app.get(RatchetRuntime).drain({ timeout: 5_000 });
      expect(mailer.sent).toEqual(['4711']);
      expect(await app.get(JobScheduler).get(id)).toMatchObject({ status: 'succeeded', executions: 1 });
    } finally {
      await app.close();
    }
  });
});
