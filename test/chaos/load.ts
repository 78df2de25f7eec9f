import { type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type EnqueueOptions, JobScheduler, RatchetModule } from 'nestjs-ratchet';
import type pg from 'pg';
import { DataSource } from 'typeorm';
import { JOB_PRIORITIES } from '../../lib/jobs/priority.js';
import { type Random } from './random.js';

const POOL_SIZE = 10;
/** Not more than so many jobs are on their way: a run ends soon after its load. */
const MOST_ON_THE_WAY = 1_000;

/** Rolls the transaction back that it is thrown in. */
const ROLLBACK = new Error('rolled back on purpose');

/**
 * Enqueues jobs of many kinds, one after another, and keeps an account of what it was told: acknowledged, rolled back, or neither,
 * when the database went away in between.
 */
export class Load {
  readonly acknowledged = new Set<string>();
  readonly rolledBack: number[] = [];
  /** Enqueues of which nobody knows what became. */
  doubtful = 0;
  readonly #source: DataSource;
  readonly #random: Random;
  readonly #client: INestApplicationContext;
  readonly #scheduler: JobScheduler;
  #n = 0;
  #stopped = false;
  #running: Promise<void> = Promise.resolve();

  private constructor(source: DataSource, client: INestApplicationContext, random: Random) {
    this.#source = source;
    this.#client = client;
    this.#scheduler = client.get(JobScheduler);
    this.#random = random;
  }

  static async on(url: string, random: Random): Promise<Load> {
    const source = new DataSource({ type: 'postgres', url, poolSize: POOL_SIZE, poolErrorHandler: () => {} });
    await source.initialize();
    // TypeORM listens to a connection a moment after it is made: one that is ended in that moment would end this process.
    const { master } = source.driver as unknown as { master: pg.Pool };
    master.on('connect', (client) => client.on('error', () => {}));
    @Module({ imports: [RatchetModule.forRoot({ dataSource: source, worker: false })] })
    class Client {}
    const client = await NestFactory.createApplicationContext(Client, { logger: false, abortOnError: false });
    return new Load(source, client, random);
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async close(): Promise<void> {
    await this.#client.close();
    if (this.#source.isInitialized) await this.#source.destroy();
  }

  /** For the time of `work` somebody else in the application has all connections of its pool. */
  async withoutConnections(work: () => Promise<void>): Promise<void> {
    const runners = Array.from({ length: POOL_SIZE }, () => this.#source.createQueryRunner());
    await Promise.allSettled(runners.map((runner) => runner.connect()));
    await work();
    await Promise.allSettled(runners.map((runner) => runner.release()));
  }

  /** One job, acknowledged or not. */
  async one(name: string, payload: object, options: EnqueueOptions = {}): Promise<void> {
    const n = ++this.#n;
    const committed = this.#scheduler.enqueueNamed(name, { n, ...payload }, options);
    await committed.then(
      ({ id }) => this.acknowledged.add(id),
      () => (this.doubtful += 1),
    );
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      if (await this.#busy()) await pause(50);
      else await Promise.all(Array.from({ length: this.#random.integer(1, 8) }, () => this.#next()));
      await pause(10);
    }
  }

  async #busy(): Promise<boolean> {
    try {
      const [row] = await this.#source.query<{ n: number }[]>('select count(*)::int as n from ratchet.job');
      return row!.n > MOST_ON_THE_WAY;
    } catch {
      return true;
    }
  }

  async #next(): Promise<void> {
    const random = this.#random;
    const work = { ms: random.integer(0, 60), failures: Math.max(0, random.integer(-4, 3)) };
    switch (random.integer(0, 9)) {
      case 0:
        return this.one('chaos.nap', {});
      case 1:
        return this.one('chaos.late', {});
      case 2:
        return this.one('chaos.parent', {});
      case 3: {
        const options = { idempotencyKey: `key-${String(random.integer(0, 50))}` };
        await Promise.all([this.one('chaos.work', work, options), this.one('chaos.work', work, options)]);
        return;
      }
      case 4:
        return this.#inTransaction(work, 'commit');
      case 5:
        return this.#inTransaction(work, 'rollback');
      case 6:
        return this.one('chaos.work', work, { delay: random.integer(10, 1_000) });
      case 7:
        return this.one('chaos.work', work, { priority: random.one(JOB_PRIORITIES), lane: 'mail' });
      default:
        return this.one('chaos.work', work, { priority: random.one(JOB_PRIORITIES) });
    }
  }

  async #inTransaction(payload: object, how: 'commit' | 'rollback'): Promise<void> {
    const numbers = Array.from({ length: 3 }, () => ++this.#n);
    try {
      const ids = await this.#source.transaction(async (manager) => {
        const made: string[] = [];
        for (const n of numbers) {
          const options = { transaction: manager };
          made.push((await this.#scheduler.enqueueNamed('chaos.work', { n, ...payload }, options)).id);
        }
        if (how === 'rollback') throw ROLLBACK;
        return made;
      });
      for (const id of ids) this.acknowledged.add(id);
    } catch {
      // It never came to a COMMIT: whatever the reason was, nothing may be there.
      if (how === 'rollback') this.rolledBack.push(...numbers);
      else this.doubtful += numbers.length;
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
