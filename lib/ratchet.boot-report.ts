import { Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { type HandlerRegistry } from './jobs/handler-registry.js';
import { type ResolvedOptions } from './ratchet.resolve.js';
import { PACKAGE_VERSION } from './ratchet.version.js';

export interface BootFacts {
  readonly options: ResolvedOptions;
  readonly handlers: HandlerRegistry;
  readonly nodeId: string;
  /** Connections of the engine's own, and what the server allows in all; undefined where another store is used. */
  readonly connections: { readonly engine: number; readonly max: number } | undefined;
}

/** One line at boot that says what this process is: what an operator compares when two nodes behave differently. */
export class BootReport implements OnApplicationBootstrap {
  readonly #logger = new Logger('RatchetModule');

  constructor(private readonly facts: BootFacts) {}

  onApplicationBootstrap(): void {
    this.#logger.log(this.line());
  }

  line(): string {
    const { options, handlers, nodeId, connections } = this.facts;
    const names = handlers.all().map(({ definition }) => definition.name);
    const who = options.engine.worker ? `node ${nodeId}` : 'enqueues only (worker: false)';
    const runs = options.engine.worker ? `, ${names.length} handlers${listed(names)}` : '';
    const opens = connections
      ? `, ${connections.engine} connections of its own (max_connections ${connections.max})`
      : '';
    return `nestjs-ratchet ${PACKAGE_VERSION}: ${who}${runs}, schema ${options.schema}${opens}`;
  }
}

function listed(names: readonly string[]): string {
  if (names.length === 0) return '';
  const shown = names.slice(0, 10).join(', ');
  return ` (${shown}${names.length > 10 ? `, and ${names.length - 10} more` : ''})`;
}
