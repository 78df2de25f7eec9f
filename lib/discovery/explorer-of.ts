import { type DiscoveryService, type ExternalContextCreator, type ModulesContainer } from '@nestjs/core';
import { type ScheduleDefaults } from './found-schedule.js';
import { type EnhancerSettings, HandlerEnhancers } from './handler-enhancers.js';
import { JobExplorer } from './job.explorer.js';
import { JobMetadataAccessor } from './job-metadata.accessor.js';

/** The explorer of an app; without enhancers nothing of Nest's comes between a job and its method. */
export function explorerOf(
  discovery: DiscoveryService,
  creator: ExternalContextCreator,
  modules: ModulesContainer,
  settings: EnhancerSettings,
  defaults: ScheduleDefaults,
  adoptCron: boolean,
): JobExplorer {
  const enhancers =
    settings.guards || settings.interceptors ? new HandlerEnhancers(creator, modules, settings) : undefined;
  return new JobExplorer(discovery, new JobMetadataAccessor(adoptCron), enhancers, defaults);
}
