import { type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { JobScheduler, RatchetModule, type RatchetSettings } from 'nestjs-ratchet';
import { manualRatchet, RatchetTester, RatchetTestingModule } from 'nestjs-ratchet/testing';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

/** An app with its tester. */
export interface AppUnderTest {
  readonly app: TestingModule;
  readonly tester: RatchetTester;
  readonly scheduler: JobScheduler;
}

export type Settings = Omit<RatchetSettings, 'transaction'>;

/** One of the two ways to test an app. */
export interface Kit {
  readonly name: string;
  open(): Promise<void>;
  /** An app with these providers, with no jobs but its own. */
  boot(providers: NonNullable<ModuleMetadata['providers']>, settings?: Settings): Promise<AppUnderTest>;
  /** Closes the apps and forgets their jobs. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

abstract class TestKit implements Kit {
  abstract readonly name: string;
  readonly #apps: TestingModule[] = [];

  abstract open(): Promise<void>;

  async boot(
    providers: NonNullable<ModuleMetadata['providers']>,
    settings: Settings = {},
  ): Promise<AppUnderTest> {
    const app = await this.compile(providers, settings);
    this.#apps.push(app);
    await app.init();
    return { app, tester: RatchetTester.of(app), scheduler: app.get(JobScheduler) };
  }

  async clear(): Promise<void> {
    for (const app of this.#apps.splice(0)) await app.close();
  }

  close(): Promise<void> {
    return this.clear();
  }

  protected abstract compile(
    providers: NonNullable<ModuleMetadata['providers']>,
    settings: Settings,
  ): Promise<TestingModule>;
}

export class ListKit extends TestKit {
  override readonly name = 'RatchetTestingModule (a list)';

  override open(): Promise<void> {
    return Promise.resolve();
  }

  protected override compile(
    providers: NonNullable<ModuleMetadata['providers']>,
    settings: Settings,
  ): Promise<TestingModule> {
    return Test.createTestingModule({
      imports: [RatchetTestingModule.forRoot(settings)],
      providers,
    }).compile();
  }
}

export class DatabaseKit extends TestKit {
  override readonly name = 'manualRatchet (PostgreSQL)';
  #database: TestDatabase | undefined;

  get database(): TestDatabase {
    if (!this.#database) throw new Error('open() was not called');
    return this.#database;
  }

  override async open(): Promise<void> {
    this.#database = await createTestDatabase();
  }

  override async clear(): Promise<void> {
    await super.clear();
    await this.#database?.query(
      'truncate ratchet.job, ratchet.job_history, ratchet.dead_letter, ratchet.idempotency_key, ratchet.schedule, ratchet.occurrence',
    );
  }

  override async close(): Promise<void> {
    await super.close();
    await this.#database?.drop();
  }

  protected override compile(
    providers: NonNullable<ModuleMetadata['providers']>,
    settings: Settings,
  ): Promise<TestingModule> {
    const ratchet = RatchetModule.forRoot({ connection: this.database.url, ...settings });
    return manualRatchet(Test.createTestingModule({ imports: [ratchet], providers })).compile();
  }
}
