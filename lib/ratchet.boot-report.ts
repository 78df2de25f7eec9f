import { doubtedLanes } from './buckets/lanes-of-node.js';
import { counted } from './errors/counted.js';
import { escapeControls } from './errors/show-value.js';
import { Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { type HandlerTransactions } from './engine/transactions/handler-transactions.js';
import { type HandlerRegistry } from './jobs/handler-registry.js';
import { adoptedLine } from './ratchet.adopted-line.js';
import { type ResolvedOptions } from './ratchet.resolve.js';
import { PACKAGE_VERSION } from './ratchet.version.js';

export interface BootFacts {
  readonly options: ResolvedOptions;
  readonly handlers: HandlerRegistry;
  readonly nodeId: string;
  /** Name of its class. */
  readonly coordinator: string;
  readonly transactions: Pick<HandlerTransactions, 'limit'>;
  /** Connections of the engine's own, and what the server allows in all; undefined where another store is used. */
  readonly connections: { readonly engine: number; readonly max: number } | undefined;
}

/** One line at boot that says what this process is: what an operator compares when two nodes behave differently. */
export class BootReport implements OnApplicationBootstrap {
  readonly #logger = new Logger('RatchetModule');

  constructor(private readonly facts: BootFacts) {}

  onApplicationBootstrap(): void {
    this.#logger.log(this.line());
    const { options, handlers } = this.facts;
    if (options.engine.worker === true) {
      for (const line of doubtedLanes(options.engine, handlers.lanes())) this.#logger.warn(line);
    }
    if (options.adoptCron) this.#logger.log(adoptedLine(handlers.schedules(), options.engine.worker));
  }

  line(): string {
    const { options, handlers, nodeId, coordinator, connections, transactions } = this.facts;
    const names = handlers.all().map(({ definition }) => definition.name);
    const { worker } = options.engine;
    const who = worker === false ? 'enqueues only (worker: false)' : `node ${nodeId}`;
    const runs =
      worker === true
        ? `, ${counted(names.length, 'handler')}${listed(names)}`
        : worker === 'drain'
          ? ", takes back the work of nodes that stopped and runs nothing (worker: 'drain')"
          : '';
    const opens = connections
      ? `, ${counted(connections.engine, 'connection')} of its own (max_connections ${connections.max})`
      : '';
    const { limit } = transactions;
    const within = limit
      ? `, at most ${counted(limit.atOnce, 'transactional handler')} at once (the DataSource has ${limit.poolSize} connections)`
      : '';
    return `nestjs-ratchet ${PACKAGE_VERSION}: ${who}${runs}, schema ${options.schema}, ${coordinator}${opens}${within}`;
  }
}

function listed(names: readonly string[]): string {
  if (names.length === 0) return '';
  const shown = names.slice(0, 10).map(escapeControls).join(', ');
  return ` (${shown}${names.length > 10 ? `, and ${names.length - 10} more` : ''})`;
}
