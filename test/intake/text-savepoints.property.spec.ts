import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type DataSource, type QueryRunner } from 'typeorm';
import { defineJob } from '../../lib/jobs/define-job.js';
import { createRatchetDatabase, type RatchetDatabase } from './ratchet-database.js';
import { TYPEORM_VERSIONS } from './typeorm-versions.js';

const Note = defineJob<{ n: number }>('note');

/** A savepoint, or the transaction itself, and the jobs that stand or fall with it. */
interface Part {
  readonly kind: 'transaction' | 'text' | 'typeorm';
  readonly name: string;
  jobs: string[];
}

const STEPS = ['enqueue', 'hasty', 'savepoint', 'rollbackTo', 'release', 'nest', 'commitNested'] as const;
const ENDS = ['commit', 'rollback', 'commitText', 'rollbackText', 'commitAndBegin'] as const;
type Step = (typeof STEPS)[number] | 'rollbackNested';

/** What a caller does on one runner, and which jobs must come of it. */
class Caller {
  #parts: Part[] = [];
  readonly committed: string[] = [];
  #names = 0;
  readonly #runner: QueryRunner;

  constructor(
    private readonly app: RatchetDatabase,
    runner: QueryRunner,
  ) {
    this.#runner = runner;
  }

  get #part(): Part {
    return this.#parts.at(-1)!;
  }

  async begin(): Promise<void> {
    await this.#runner.startTransaction();
    this.#parts = [{ kind: 'transaction', name: '', jobs: [] }];
  }

  async do(step: Step): Promise<void> {
    const { name, kind } = this.#part;
    switch (step) {
      case 'enqueue':
        this.#part.jobs.push(await this.enqueue());
        return;
      case 'hasty':
        return this.#hasty();
      case 'savepoint':
        this.#parts.push({ kind: 'text', name: `s${(this.#names += 1)}`, jobs: [] });
        await this.#runner.query(`savepoint ${this.#part.name}`);
        return;
      case 'rollbackTo':
        if (kind !== 'text') return;
        this.#part.jobs = [];
        await this.#runner.query(`/* again */ ROLLBACK TO SAVEPOINT ${name}`);
        return;
      case 'release':
        if (kind !== 'text') return;
        this.#merge();
        await this.#runner.query(`release ${name}`);
        return;
      case 'nest':
        this.#parts.push({ kind: 'typeorm', name: '', jobs: [] });
        await this.#runner.startTransaction();
        return;
      case 'commitNested':
        if (!this.#parts.some((part) => part.kind === 'typeorm')) return;
        while (this.#part.kind !== 'typeorm') this.#merge();
        this.#merge();
        await this.#runner.commitTransaction();
        return;
      case 'rollbackNested':
        if (!this.#parts.some((part) => part.kind === 'typeorm')) return;
        while (this.#parts.pop()?.kind !== 'typeorm');
        await this.#runner.rollbackTransaction();
    }
  }

  async end(how: (typeof ENDS)[number]): Promise<void> {
    while (this.#parts.some(({ kind }) => kind === 'typeorm')) await this.do('commitNested');
    const all = this.#parts.flatMap(({ jobs }) => jobs);
    this.#parts = [];
    if (how.startsWith('commit')) this.committed.push(...all);
    if (how === 'commit') return this.#runner.commitTransaction();
    if (how === 'rollback') return this.#runner.rollbackTransaction();
    await this.#runner.query(how === 'rollbackText' ? 'rollback' : 'commit');
    await expect(this.enqueue()).rejects.toMatchObject({ code: 'TRANSACTION_NOT_ACTIVE' });
    if (how === 'commitAndBegin') {
      await this.#runner.query('begin');
      this.committed.push(await this.enqueue());
    }
    await this.#runner.commitTransaction();
  }

  async enqueue(): Promise<string> {
    return (await this.app.scheduler.enqueue(Note, { n: 1 }, { transaction: this.#runner })).id;
  }

  /** Not awaited before its savepoint is rolled back: refused or undone, and never written behind the rollback. */
  async #hasty(): Promise<void> {
    if (this.#part.kind !== 'text') return;
    const late = Promise.allSettled([this.enqueue(), this.enqueue()]);
    await this.do('rollbackTo');
    for (const outcome of await late) {
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({
          code: 'TRANSACTION_NOT_ACTIVE',
          message: expect.stringContaining('savepoint of this call ended before the job was written'),
        });
    }
  }

  #merge(): void {
    const { jobs } = this.#parts.pop()!;
    this.#part.jobs.push(...jobs);
  }
}

const matrix = TYPEORM_VERSIONS.flatMap((typeorm) => [
  { ...typeorm, events: 'heard' },
  { ...typeorm, events: 'out of reach' },
]);

describe.each(matrix)('savepoints as text, TypeORM $version, events $events', ({ make, events }) => {
  let app: RatchetDatabase;
  let source: DataSource;

  beforeAll(async () => {
    app = await createRatchetDatabase({ make });
    source = app.source;
    if (events !== 'heard') Object.freeze(source.subscribers);
  });
  afterAll(() => app.close());

  const liveIds = async (): Promise<string[]> => (await app.live()).map(({ id }) => id);

  it('take an enqueue after the rollback of the savepoint that was the first to have one', async () => {
    await app.database.query('truncate ratchet.job');
    const id = await source.transaction(async (manager) => {
      await manager.query('savepoint a');
      await app.scheduler.enqueue(Note, { n: 1 }, { transaction: manager });
      await manager.query('rollback to a');
      return (await app.scheduler.enqueue(Note, { n: 2 }, { transaction: manager })).id;
    });
    expect(await liveIds()).toEqual([id]);
  });

  it('are noticed by the next enqueue but one, when they are sent past TypeORM', async () => {
    await app.database.query('truncate ratchet.job');
    const id = await source.transaction(async (manager) => {
      const enqueue = () => app.scheduler.enqueue(Note, { n: 1 }, { transaction: manager });
      const client = (await manager.queryRunner?.connect()) as { query(text: string): Promise<unknown> };
      await client.query('savepoint a');
      await enqueue();
      await client.query('rollback to a');
      if (events === 'heard')
        await expect(enqueue()).rejects.toMatchObject({ code: 'TRANSACTION_NOT_ACTIVE' });
      return (await enqueue()).id;
    });
    expect(await liveIds()).toEqual([id]);
  });

  it('keep exactly the jobs whose part of the transaction was committed', async () => {
    const steps = fc.array(fc.constantFrom<Step>(...STEPS, 'rollbackNested', 'enqueue', 'rollbackTo'), {
      maxLength: 14,
    });
    const transactions = fc.array(fc.tuple(steps, fc.constantFrom(...ENDS)), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(transactions, async (all) => {
        await app.database.query('truncate ratchet.job');
        const runner = source.createQueryRunner();
        try {
          const caller = new Caller(app, runner);
          for (const [each, how] of all) {
            await caller.begin();
            for (const step of each) await caller.do(step);
            await caller.end(how);
          }
          expect((await liveIds()).sort()).toEqual(caller.committed.sort());
        } finally {
          await runner.release();
        }
      }),
      { numRuns: 60 },
    );
  });
});
