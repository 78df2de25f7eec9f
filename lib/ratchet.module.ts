import { type ConfigurableModuleAsyncOptions, type DynamicModule, Module } from '@nestjs/common';
import { type RatchetExtras } from './ratchet.extras.js';
import { ConfigurableModuleClass } from './ratchet.module-definition.js';
import { type RatchetOptions } from './ratchet.options.js';

/** What `RatchetModule.forRoot` takes: the options, and what must be known when the module graph is built. */
export type RatchetModuleOptions = RatchetOptions & RatchetExtras;

/** What `RatchetModule.forRootAsync` takes: where the options come from, and the same extras. */
export type RatchetModuleAsyncOptions = ConfigurableModuleAsyncOptions<
  RatchetOptions,
  'createRatchetOptions'
> &
  RatchetExtras;

/**
 * Durable background jobs on the PostgreSQL that the app already has. Import it once, in the root module; every module
 * can then inject `JobScheduler`, and methods marked with `@Job` run.
 *
 * Call `app.enableShutdownHooks()`: without it a SIGTERM ends the process before running jobs can finish.
 *
 * @example
 * ```ts
 * @Module({
 *   imports: [TypeOrmModule.forRoot({ … }), RatchetModule.forRoot({ dataSource: 'default' })],
 *   providers: [InvoiceJobs],
 * })
 * export class AppModule {}
 * ```
 */
@Module({})
export class RatchetModule extends ConfigurableModuleClass {
  /**
   * @throws InvalidOptionError (at boot) with everything that is wrong with the options.
   */
  static override forRoot(options: RatchetModuleOptions): DynamicModule {
    return super.forRoot(options);
  }

  /**
   * The same with options that a factory makes: `{ useFactory, inject, imports }`, `{ useClass }` or `{ useExisting }` of
   * a `RatchetOptionsFactory`.
   *
   * @throws InvalidOptionError (at boot) with everything that is wrong with the options.
   */
  static override forRootAsync(options: RatchetModuleAsyncOptions): DynamicModule {
    return super.forRootAsync(options);
  }
}
