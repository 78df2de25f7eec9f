import { type OnModuleInit } from '@nestjs/common';
import { HandlerRegistry, type RegisteredHandler } from '../jobs/handler-registry.js';
import { type JobExplorer } from './job.explorer.js';

/** The handlers of this process. Discovered at init, when every provider is made; the engine starts later, at bootstrap. */
export class DiscoveredHandlers extends HandlerRegistry implements OnModuleInit {
  #byName: ReadonlyMap<string, RegisteredHandler> = new Map();

  constructor(private readonly explorer: JobExplorer) {
    super();
  }

  onModuleInit(): void {
    this.#byName = this.explorer.explore();
  }

  override find(name: string): RegisteredHandler | undefined {
    return this.#byName.get(name);
  }

  override all(): readonly RegisteredHandler[] {
    return [...this.#byName.values()];
  }
}
