import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { Module, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { JobScheduler, RatchetModule } from 'nestjs-ratchet';
import { type Mutation } from '../support/compile.mjs';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createSideTables } from './history-checker.js';
import { compileLibrary, WorkerProcess, type WorkerEvent } from './worker-process.js';

/** A database, a client that only enqueues, and workers that are real processes. Registers its own hooks. */
export class ChaosFixture {
  database!: TestDatabase;
  scheduler!: JobScheduler;
  readonly #workers: WorkerProcess[] = [];
  #client!: INestApplicationContext;
  #library!: string;

  constructor(name: string, mutations: readonly Mutation[] = []) {
    beforeAll(() => {
      this.#library = compileLibrary(name, mutations);
    });
    beforeEach(() => this.#open());
    afterEach(() => this.#close());
    afterAll(() => {});
  }

  start(options: Record<string, unknown> = {}, nodeId = 'node-a'): WorkerProcess {
    const worker = new WorkerProcess(this.#library, this.database.url, nodeId, options);
    this.#workers.push(worker);
    return worker;
  }

  /** Lets a held job go on: in every process, or in one. */
  async go(id: string, pid?: number): Promise<void> {
    await this.database.query('insert into side_go values ($1, $2)', [id, pid ?? null]);
  }

  /** All of them have a terminal state. */
  ended(ids: readonly string[]): Promise<true> {
    return until(async () => {
      const rows = await this.database.query(
        `select from ratchet.jobs where id = any ($1) and status in ('succeeded', 'failed', 'canceled')`,
        [ids],
      );
      return rows.length === ids.length;
    });
  }

  async #open(): Promise<void> {
    this.database = await createTestDatabase();
    await createSideTables(this.database);
    @Module({ imports: [RatchetModule.forRoot({ connection: this.database.url, worker: false })] })
    class Client {}
    this.#client = await NestFactory.createApplicationContext(Client, { logger: false, abortOnError: false });
    this.scheduler = this.#client.get(JobScheduler);
  }

  async #close(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.end()));
    await this.#client.close();
    await this.database.drop();
  }
}

/** An execution began, of one job or of any. */
export const begun =
  (job?: string) =>
  (event: WorkerEvent): boolean =>
    event.event === 'begin' && (job === undefined || event.job === job);

/** Asks the database again and again, as the people outside would. */
export async function until<T>(look: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const seen = await look();
    if (seen) return seen;
  }
}
