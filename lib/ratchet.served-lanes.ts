import { Logger } from '@nestjs/common';
import { lanesOfNode } from './buckets/lanes-of-node.js';
import { type Clock } from './cluster/clock.js';
import { guardedLogger } from './engine/line-logger.js';
import { ServedLanes } from './intake/served-lanes.js';
import { type HandlerRegistry } from './jobs/handler-registry.js';
import { type ResolvedOptions } from './ratchet.resolve.js';
import { type JobStore } from './store/job-store.js';

/** What an application knows of the lanes that are served: its own, and those of the list of nodes. */
export function servedLanes(
  { engine }: ResolvedOptions,
  store: JobStore,
  handlers: HandlerRegistry,
  clock: Clock,
): ServedLanes {
  return new ServedLanes({
    nodes: () => store.nodes(),
    own: () => (engine.worker === true ? lanesOfNode(engine, handlers.lanes()).map(({ lane }) => lane) : []),
    handlers: () => handlers.all().map(({ definition, owner }) => ({ lane: definition.lane, owner })),
    clock,
    logger: guardedLogger(new Logger('RatchetIntake')),
  });
}
