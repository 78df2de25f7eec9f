import { type OnModuleInit } from '@nestjs/common';
import { HandlerRegistry, type RegisteredHandler } from '../jobs/handler-registry.js';
import { type AnnotatedSchedule } from '../jobs/schedule-spec.js';
import { type Discovered, type JobExplorer } from './job.explorer.js';

/**
 * The handlers and the annotated schedules of this process. Discovered at init, when every provider is made; the engine starts
 * later, at bootstrap. Modules that are initialised before this one may enqueue by name in their own hooks, and find the
 * handlers too: asked earlier it looks at what is there, and looks again the next time.
 */
export class DiscoveredHandlers extends HandlerRegistry implements OnModuleInit {
  #discovered: Discovered | undefined;

  /** @param check - of the app, when every provider is made; throws what must not boot. */
  constructor(
    private readonly explorer: JobExplorer,
    private readonly check: () => void = () => undefined,
  ) {
    super();
  }

  async onModuleInit(): Promise<void> {
    this.check();
    this.#discovered = this.explorer.explore();
    await this.#discovered.verify();
  }

  override find(name: string): RegisteredHandler | undefined {
    return this.#now().handlers.get(name);
  }

  override all(): readonly RegisteredHandler[] {
    return [...this.#now().handlers.values()].filter(({ ofNode }) => !ofNode);
  }

  override schedules(): readonly AnnotatedSchedule[] {
    return this.#now().schedules;
  }

  /** What there is before the init. */
  protected early(): Discovered {
    return this.explorer.explore();
  }

  #now(): Discovered {
    return this.#discovered ?? this.early();
  }
}
