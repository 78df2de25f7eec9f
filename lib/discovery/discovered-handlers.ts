import { type OnModuleInit } from '@nestjs/common';
import { HandlerRegistry, type RegisteredHandler } from '../jobs/handler-registry.js';
import { type JobExplorer } from './job.explorer.js';

/**
 * The handlers of this process. Discovered at init, when every provider is made; the engine starts later, at bootstrap.
 * Modules that are initialised before this one may enqueue by name in their own hooks, and find the handlers too: asked
 * earlier it looks at what is there, and looks again the next time.
 */
export class DiscoveredHandlers extends HandlerRegistry implements OnModuleInit {
  #discovered: ReadonlyMap<string, RegisteredHandler> | undefined;

  constructor(private readonly explorer: JobExplorer) {
    super();
  }

  onModuleInit(): void {
    this.#discovered = this.explorer.explore();
  }

  override find(name: string): RegisteredHandler | undefined {
    return this.#handlers().get(name);
  }

  override all(): readonly RegisteredHandler[] {
    return [...this.#handlers().values()];
  }

  #handlers(): ReadonlyMap<string, RegisteredHandler> {
    return this.#discovered ?? this.explorer.explore();
  }
}
