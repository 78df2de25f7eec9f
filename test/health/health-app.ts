import { afterEach, beforeEach } from '@jest/globals';
import { Controller, Get, Module, type INestApplication, type OnModuleInit } from '@nestjs/common';
import { HealthCheck, HealthCheckService, type HealthCheckResult, TerminusModule } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import { Job, RatchetModule, type RatchetModuleOptions } from 'nestjs-ratchet';
import { RatchetHealthIndicator, RatchetHealthModule } from 'nestjs-ratchet/health';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { deferred } from '../support/engine-node.js';

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly ratchet: RatchetHealthIndicator,
  ) {}

  @Get('live')
  @HealthCheck()
  live(): Promise<HealthCheckResult> {
    return this.health.check([() => this.ratchet.isLive()]);
  }

  @Get('ready')
  @HealthCheck()
  ready(): Promise<HealthCheckResult> {
    return this.health.check([() => this.ratchet.isReady('jobs')]);
  }
}

/** What a probe was told. */
export interface Probe {
  readonly code: number;
  readonly details: Record<string, unknown>;
}

/** An app with the two probes of a platform, over HTTP. */
export class HealthApp {
  readonly go = deferred();
  app!: INestApplication;

  get events(): EngineEvents {
    return this.app.get(EngineEvents, { strict: false });
  }

  /** `beforeStart` runs when the store is open and the engine has not begun. */
  async boot(options: RatchetModuleOptions, beforeStart: () => void = () => {}): Promise<this> {
    const { go } = this;
    class Jobs implements OnModuleInit {
      onModuleInit(): void {
        beforeStart();
      }
      @Job('held')
      held(): Promise<void> {
        return go.promise;
      }
    }
    @Module({
      imports: [
        RatchetModule.forRoot(options),
        TerminusModule.forRoot({ logger: false }),
        RatchetHealthModule,
      ],
      controllers: [HealthController],
      providers: [Jobs],
    })
    class App {}
    const module = await Test.createTestingModule({ imports: [App] }).compile();
    this.app = module.createNestApplication({ logger: false });
    await this.app.listen(0, '127.0.0.1');
    return this;
  }

  live(): Promise<Probe> {
    return this.#probe('live', 'ratchet');
  }

  ready(): Promise<Probe> {
    return this.#probe('ready', 'jobs');
  }

  /** Asks until the answer is the one. */
  async until(ask: () => Promise<Probe>, is: (probe: Probe) => boolean): Promise<Probe> {
    for (;;) {
      const probe = await ask();
      if (is(probe)) return probe;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async #probe(path: string, key: string): Promise<Probe> {
    const response = await fetch(`${await this.app.getUrl()}/health/${path}`, {
      headers: { connection: 'close' },
    });
    const body = (await response.json()) as { details: Record<string, Record<string, unknown>> };
    return { code: response.status, details: body.details[key]! };
  }
}

/** A database of its own for each test, and the apps on it, closed after it. */
export class HealthFixture {
  database!: TestDatabase;
  readonly #closing: (() => Promise<unknown>)[] = [];

  constructor() {
    beforeEach(async () => {
      this.database = await createTestDatabase();
    });
    afterEach(async () => {
      for (const close of this.#closing.splice(0).reverse()) await close();
      await this.database.drop();
    });
  }

  closes(close: () => Promise<unknown>): void {
    this.#closing.push(close);
  }

  async boot(options: RatchetModuleOptions, beforeStart?: () => void): Promise<HealthApp> {
    const made = new HealthApp();
    this.closes(() => {
      made.go.resolve();
      return made.app.close();
    });
    return made.boot(options, beforeStart);
  }
}
