import { type DiscoveryService } from '@nestjs/core';
import { DiscoveredHandlers } from '../discovery/discovered-handlers.js';
import { JobExplorer } from '../discovery/job.explorer.js';
import { JobMetadataAccessor } from '../discovery/job-metadata.accessor.js';
import { type RegisteredHandler } from '../jobs/handler-registry.js';

/** Looks for handlers when they are asked for, if `init()` has not yet: many unit tests stop at `compile()`. */
export class LazyHandlers extends DiscoveredHandlers {
  #explored = false;

  override onModuleInit(): void {
    super.onModuleInit();
    this.#explored = true;
  }

  override find(name: string): RegisteredHandler | undefined {
    if (!this.#explored) super.onModuleInit();
    return super.find(name);
  }

  override all(): readonly RegisteredHandler[] {
    if (!this.#explored) super.onModuleInit();
    return super.all();
  }
}

/** Factory of the provider. */
export function lazyHandlers(discovery: DiscoveryService): LazyHandlers {
  return new LazyHandlers(new JobExplorer(discovery, new JobMetadataAccessor()));
}
