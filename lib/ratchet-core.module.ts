import { type DynamicModule, Module, type ModuleMetadata, type Provider } from '@nestjs/common';
import { DiscoveryModule, ModulesContainer } from '@nestjs/core';
import { RatchetBuckets } from './buckets/ratchet-buckets.js';
import { RatchetRuntime } from './engine/runtime.js';
import { RatchetEvents } from './observability/ratchet-events.js';
import { RatchetMonitor } from './observability/ratchet-monitor.js';
import { guardModuleGraph } from './ratchet.boot-guard.js';
import { type RatchetExtras, RATCHET_OPTIONS } from './ratchet.extras.js';
import { type RatchetOptions } from './ratchet.options.js';
import { PORT_TOKENS } from './ratchet.ports.js';
import { engineProviders } from './ratchet.providers.js';
import { resolveOptions } from './ratchet.resolve.js';
import { RESOLVED_OPTIONS } from './ratchet.tokens.js';
import { JobScheduler } from './scheduler/job-scheduler.js';
import { RecurringScheduler } from './scheduler/recurring/recurring-scheduler.js';

/**
 * Holds the engine's providers. Not global, so that Nest stops it by its place in the graph, before the database of a
 * TypeOrmModule that was imported later. Users import `RatchetModule`, which imports and exports it.
 */
@Module({})
export class RatchetCoreModule {
  /**
   * @param options - the provider of the raw options, as the module builder made it.
   */
  static make(
    options: readonly Provider[],
    extras: RatchetExtras,
    imports: NonNullable<ModuleMetadata['imports']>,
  ): DynamicModule {
    return {
      module: RatchetCoreModule,
      imports: [DiscoveryModule, ...imports],
      providers: [
        ...options,
        ...(extras.extraProviders ?? []),
        {
          provide: RESOLVED_OPTIONS,
          inject: [RATCHET_OPTIONS, ModulesContainer],
          useFactory: (raw: RatchetOptions, modules: ModulesContainer) => {
            guardModuleGraph(modules, RatchetCoreModule);
            return resolveOptions(raw);
          },
        },
        ...engineProviders(extras),
      ],
      exports: [
        JobScheduler,
        RecurringScheduler,
        RatchetBuckets,
        RatchetEvents,
        RatchetMonitor,
        RatchetRuntime,
        ...Object.values(PORT_TOKENS),
      ],
    };
  }
}
