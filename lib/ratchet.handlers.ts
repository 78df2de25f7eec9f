import { DiscoveryService, ExternalContextCreator, ModulesContainer } from '@nestjs/core';
import { DiscoveredHandlers } from './discovery/discovered-handlers.js';
import { refuseLocalCron } from './discovery/cron-metadata.js';
import { explorerOf } from './discovery/explorer-of.js';
import { type ResolvedOptions } from './ratchet.resolve.js';
import { RESOLVED_OPTIONS } from './ratchet.tokens.js';

/** What {@link discoveredHandlers} is given. */
export const HANDLERS_INJECT = [
  DiscoveryService,
  ExternalContextCreator,
  ModulesContainer,
  RESOLVED_OPTIONS,
] as const;

/** The handlers of an application, by its own options. */
export function discoveredHandlers(
  discovery: DiscoveryService,
  creator: ExternalContextCreator,
  modules: ModulesContainer,
  options: ResolvedOptions,
): DiscoveredHandlers {
  return new DiscoveredHandlers(...handlerParts(discovery, creator, modules, options));
}

/** What {@link DiscoveredHandlers} is made of. */
export function handlerParts(
  discovery: DiscoveryService,
  creator: ExternalContextCreator,
  modules: ModulesContainer,
  { enhancers, recurringTimeZone: timeZone, engine, adoptCron }: ResolvedOptions,
): ConstructorParameters<typeof DiscoveredHandlers> {
  const defaults = { timeZone, payloadBytes: engine.limits.payloadBytes };
  const explorer = explorerOf(discovery, creator, modules, enhancers, defaults, adoptCron);
  return [
    explorer,
    () => {
      if (adoptCron) refuseLocalCron(modules);
    },
  ];
}
