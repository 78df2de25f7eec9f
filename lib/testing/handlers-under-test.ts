import { type DiscoveryService, type ExternalContextCreator, type ModulesContainer } from '@nestjs/core';
import { DiscoveredHandlers } from '../discovery/discovered-handlers.js';
import { type Discovered } from '../discovery/job.explorer.js';
import { handlerParts } from '../ratchet.handlers.js';
import { type ResolvedOptions } from '../ratchet.resolve.js';

/**
 * Handlers of an application that may never be initialised: many unit tests stop at `compile()`. By then every provider is made, so
 * that the first look is kept; a look for each job would take longer than the job.
 */
export class HandlersUnderTest extends DiscoveredHandlers {
  #early: Discovered | undefined;

  protected override early(): Discovered {
    return (this.#early ??= super.early());
  }
}

/** Factory of the provider. */
export function handlersUnderTest(
  discovery: DiscoveryService,
  creator: ExternalContextCreator,
  modules: ModulesContainer,
  options: ResolvedOptions,
): HandlersUnderTest {
  return new HandlersUnderTest(...handlerParts(discovery, creator, modules, options));
}
