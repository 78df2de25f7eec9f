import { type ModulesContainer } from '@nestjs/core';
import { ModuleImportedTwiceError, PortOutsideModuleError } from './errors/boot-errors.js';
import { RatchetEvents } from './observability/ratchet-events.js';
import { refuseSecondCopy } from './ratchet.copies.js';
import { PORT_TOKENS } from './ratchet.ports.js';
import { JobScheduler } from './scheduler/job-scheduler.js';
import { RecurringScheduler } from './scheduler/recurring/recurring-scheduler.js';
import { RatchetRuntime } from './engine/runtime.js';

/** Tokens that only the core module may provide, with the option that replaces them where there is one. */
const RESERVED: readonly (readonly [token: { readonly name: string }, option: string | undefined])[] = [
  ...Object.entries(PORT_TOKENS).map(([option, token]) => [token, option] as const),
  [JobScheduler, undefined],
  [RecurringScheduler, undefined],
  [RatchetEvents, undefined],
  [RatchetRuntime, undefined],
];

/**
 * Mistakes in the module graph that Nest would let pass and that would only show as jobs that do not run: two engines,
 * two copies of the package, a port provided where the engine does not look.
 */
export function guardModuleGraph(modules: ModulesContainer, core: unknown): void {
  refuseSecondCopy();
  const all = [...modules.values()];
  const engines = all.filter((module) => module.metatype === core).length;
  if (engines > 1) throw new ModuleImportedTwiceError(engines);
  for (const module of all) {
    if (module.metatype === core) continue;
    for (const [token, option] of RESERVED) {
      if (module.providers.has(token as never))
        throw new PortOutsideModuleError(token.name, module.name, option);
    }
  }
}
