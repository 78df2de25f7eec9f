import { ConfigurableModuleBuilder, type DynamicModule } from '@nestjs/common';
import { RatchetCoreModule } from './ratchet-core.module.js';
import { refuseSecondCopy } from './ratchet.copies.js';
import { checkExtras } from './ratchet.extras-check.js';
import { RATCHET_OPTIONS, type RatchetExtras } from './ratchet.extras.js';
import { type RatchetOptions } from './ratchet.options.js';

/** Each named: what is not is taken for an option. */
const EXTRAS: { [Key in keyof Required<RatchetExtras>]: RatchetExtras[Key] } = {
  isGlobal: true,
  imports: [],
  extraProviders: [],
  coordinator: undefined,
  jobStore: undefined,
  lockStore: undefined,
  scheduleStore: undefined,
  bucketStore: undefined,
  startupCoordinator: undefined,
  nodeIdentity: undefined,
  retryPolicy: undefined,
  clock: undefined,
};

/**
 * A global shell over a core that is not global. Nest stops global modules last, after TypeOrmModule has closed the
 * database when that one was imported later; the core's place follows the graph, and with it the database is alive during
 * a drain in either order of imports.
 */
function shellOverCore(definition: DynamicModule, extras: RatchetExtras): DynamicModule {
  refuseSecondCopy();
  // The imports of forRootAsync are its factory's too, so Nest has put them there.
  checkExtras({ ...extras, imports: definition.imports ?? extras.imports });
  const core = RatchetCoreModule.make(definition.providers ?? [], extras, [
    ...(definition.imports ?? []),
    ...(extras.imports ?? []),
  ]);
  return {
    module: definition.module,
    global: extras.isGlobal ?? true,
    imports: [core],
    exports: [RatchetCoreModule],
  };
}

export const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<RatchetOptions>({
  optionsInjectionToken: RATCHET_OPTIONS,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createRatchetOptions')
  .setExtras<RatchetExtras>(EXTRAS, shellOverCore)
  .build();
