import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { Module, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { JobScheduler, RatchetBuckets, RatchetModule } from 'nestjs-ratchet';
import { auditBuckets } from '../support/bucket-audit.js';
import { type Mutation } from '../support/compile.mjs';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createSideTables, type Finding, judge, type Known, watchMembership } from './history-checker.js';
import { type OwnServer } from './own-server.js';
import { compileLibrary, WorkerProcess, type WorkerEvent } from './worker-process.js';

export const GRACE_MS = 2_000;
/** Nodes that notice a death soon. */
export const SOON = { heartbeat: { grace: GRACE_MS, interval: 500 } };

/** Nodes that dedicate buckets to priorities, serve two lanes, and claim ahead. */
export const FLEET = {
  ...SOON,
  concurrency: 10,
  buckets: { critical: 2 },
  lanes: { default: { bufferSize: 20 }, mail: { bufferSize: 20, concurrency: 6, reserved: 1 } },
};

/** How much of something: with `RATCHET_CHAOS_FULL=1` more than what is enough to see it. */
export function size(enough: number, full: number): number {
  return process.env['RATCHET_CHAOS_FULL'] === '1' ? full : enough;
}

/** A database, a client that only enqueues, and workers that are real processes. Registers its own hooks. */
export class ChaosFixture {
  database!: TestDatabase;
  scheduler!: JobScheduler;
  /** For the operator of the cluster. */
  buckets!: RatchetBuckets;
  readonly #workers: WorkerProcess[] = [];
  #client!: INestApplicationContext;
  #library!: string;

  /** `server`: its own one, that the tests may stop. */
  constructor(name: string, mutations: readonly Mutation[] = [], server?: OwnServer) {
    beforeAll(async () => {
      this.#library = compileLibrary(name, mutations);
      await server?.open();
    }, 120_000);
    beforeEach(() => this.#open(), 60_000);
    afterEach(() => this.#close(), 60_000);
    afterAll(() => server?.close(), 60_000);
  }

  get workers(): readonly WorkerProcess[] {
    return this.#workers;
  }

  start(
    options: Record<string, unknown> = {},
    nodeId = 'node-a',
    how: { script?: string; url?: string } = {},
  ): WorkerProcess {
    const { script, url = this.database.url } = how;
    const worker = new WorkerProcess({
      library: this.#library,
      url,
      sideUrl: this.database.url,
      nodeId,
      options,
      ...(script ? { script } : {}),
    });
    this.#workers.push(worker);
    return worker;
  }

  async enqueue(name: string, payload: object, count: number): Promise<string[]> {
    const handles = await Promise.all(
      Array.from({ length: count }, () => this.scheduler.enqueueNamed(name, payload)),
    );
    return handles.map(({ id }) => id);
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

  /** The verdict on the run; a node id of these processes died with all that it held when it was killed. */
  judge(
    acknowledged: readonly string[],
    known: Omit<Known, 'acknowledged' | 'killed'> = {},
  ): Promise<Finding[]> {
    const killed = this.#workers.filter((worker) => worker.crashed).map(({ pid }) => pid);
    return judge(this.database, { acknowledged, killed, graceMs: GRACE_MS, ...known });
  }

  async #open(): Promise<void> {
    this.database = await createTestDatabase();
    await createSideTables(this.database);
    @Module({ imports: [RatchetModule.forRoot({ connection: this.database.url, worker: false })] })
    class Client {}
    this.#client = await NestFactory.createApplicationContext(Client, { logger: false, abortOnError: false });
    this.scheduler = this.#client.get(JobScheduler);
    this.buckets = this.#client.get(RatchetBuckets);
    await watchMembership(this.database);
    await auditBuckets(this.database);
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

/** The process said so. */
export const said =
  (name: WorkerEvent['event'], detail: Partial<WorkerEvent> = {}) =>
  (event: WorkerEvent): boolean =>
    event.event === name &&
    Object.entries(detail).every(([key, value]) => event[key as keyof WorkerEvent] === value);

/** Asks the database again and again, as the people outside would; also while it is away. */
export async function until<T>(look: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const seen = await look().catch(() => undefined);
    if (seen) return seen;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
