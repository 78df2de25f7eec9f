import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, type LoggerService } from '@nestjs/common';
import { Job, RatchetModule } from 'nestjs-ratchet';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Apps } from './app.js';

const apps = new Apps();
let database: TestDatabase;
let lines: string[] = [];

const collector: LoggerService = {
  log: (message: unknown, context: unknown) => void lines.push(`${String(context)}: ${String(message)}`),
  error: () => undefined,
  warn: () => undefined,
};

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(() => apps.closeAll());
afterAll(() => database.drop());

@Injectable()
class Jobs {
  @Job('mail.send')
  send(): void {}
  @Job('report.build')
  build(): void {}
}

async function bootLine(options: object): Promise<string | undefined> {
  lines = [];
  const ratchet = RatchetModule.forRoot({ connection: database.url, ...options });
  await apps.boot({ imports: [ratchet], providers: [Jobs] }, (builder) => builder.setLogger(collector));
  return lines.find((line) => line.startsWith('RatchetModule: nestjs-ratchet'));
}

describe('the boot line', () => {
  it('says node, handlers, schema and connections', async () => {
    expect(await bootLine({ nodeId: 'pod-1' })).toMatch(
      /^RatchetModule: nestjs-ratchet \d+\.\d+\.\d+\S*: node pod-1, 2 handlers \(mail\.send, report\.build\), schema ratchet, PostgresCoordinator, 4 connections of its own \(max_connections \d+\)$/,
    );
  });

  it('says that a process only enqueues', async () => {
    expect(await bootLine({ worker: false })).toMatch(/: enqueues only \(worker: false\), .* 0 connections/);
  });

  it('says that a process only drains', async () => {
    expect(await bootLine({ worker: 'drain', nodeId: 'pod-2' })).toMatch(
      /: node pod-2, takes back the work of nodes that stopped and runs nothing \(worker: 'drain'\), .* 4 connections/,
    );
  });

  it('never shows where the database is', async () => {
    await bootLine({});
    expect(lines.join()).not.toContain(database.name);
  });
});
