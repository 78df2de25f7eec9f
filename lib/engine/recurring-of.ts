import { Recurring } from '../recurring/recurring.js';
import { MissingScheduleStore } from '../store/missing-schedule-store.js';
import { type NodeRef } from '../store/job-store.js';
import { type ScheduleStore } from '../store/schedule-store.js';
import { faultDelayMs } from './backoff-delay.js';
import { type EngineFaults } from './engine-faults.js';
import { type EngineParts } from './engine-parts.js';
import { type ExecutorFactory } from './exchange-loop-parts.js';
import { type LineLogger } from './line-logger.js';

/** Where the cluster's schedules are, if they are anywhere. */
export function schedulesOf({ schedules }: EngineParts): ScheduleStore | undefined {
  return schedules instanceof MissingScheduleStore ? undefined : schedules;
}

/** Those that began with this node know no more than it does. */
const LONGER_MS = 1_000;

/** All by the database's clock. */
async function othersRun({ store, settings }: EngineParts, node: NodeRef): Promise<boolean> {
  const nodes = await store.nodes();
  const own = nodes.find(({ id }) => id === node.id);
  return nodes.some(({ id, state, startedAt, heartbeatAgeMs }) => {
    const earlierMs = own ? own.startedAt.getTime() - startedAt.getTime() : 0;
    const alive = state === 'running' && heartbeatAgeMs < settings.heartbeat.graceMs;
    return id !== node.id && alive && earlierMs > LONGER_MS;
  });
}

/**
 * The recurring schedules of a node, with its clock, its log and its executor. Undefined: it has none, and nowhere to look for those of
 * others. (One that is annotated although the store is missing is told so when it registers.)
 */
export function recurringOf(
  parts: EngineParts,
  faults: EngineFaults,
  logger: LineLogger,
  executor: ExecutorFactory,
): Recurring | undefined {
  const annotated = parts.handlers.schedules();
  const store = annotated.length > 0 ? parts.schedules : schedulesOf(parts);
  if (!store) return undefined;
  const { locks, messages, clock, events, debug } = parts;
  // Progress of what has no job is kept nowhere.
  const starter = executor({ onProgress: () => undefined });
  return new Recurring({
    annotated,
    store,
    locks,
    messages,
    clock,
    events,
    debug,
    logger,
    faults: {
      failed: (where, error, retryInMs) => void faults.failed(where, error, retryInMs),
      worked: (where) => faults.worked(where),
      delayMs: (failures) => faultDelayMs(failures),
    },
    run: (job) => starter.start(job),
    othersRun: (node) => othersRun(parts, node),
  });
}
