import { type ConfigurableModuleAsyncOptions, type DynamicModule, Module } from '@nestjs/common';
import { type RatchetExtras } from './ratchet.extras.js';
import { ConfigurableModuleClass } from './ratchet.module-definition.js';
import { type RatchetOptions } from './ratchet.options.js';
import { readingOptions, requireFactory, requireOptions } from './ratchet.resolve.js';

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
   * @throws InvalidOptionError with everything that is wrong with the options: at boot, or at once where no module could be
   *   built of them (there are none, a port is no provider).
   */
  static override forRoot(options: RatchetModuleOptions): DynamicModule {
    requireOptions(options);
    return readingOptions(() => super.forRoot(options));
  }

  /**
   * The same with options that a factory makes: `{ useFactory, inject, imports }`, `{ useClass }` or `{ useExisting }` of
   * a `RatchetOptionsFactory`.
   *
   * @throws InvalidOptionError with everything that is wrong with the options, as {@link RatchetModule.forRoot}.
   */
  static override forRootAsync(options: RatchetModuleAsyncOptions): DynamicModule {
    return readingOptions(() => {
      requireFactory(options);
      return super.forRootAsync(options);
    });
  }
}
