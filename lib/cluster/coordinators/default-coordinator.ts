import { type EngineEvents } from '../../observability/engine-events.js';
import { type JobStore } from '../../store/job-store.js';
import { PostgresJobStore } from '../../store/postgres/postgres-job-store.js';
import { type ClusterCoordinator, type CoordinatorHealth } from '../cluster-coordinator.js';
import { NoCoordinator } from '../no-coordinator.js';
import { PostgresCoordinator } from './postgres-coordinator.js';

export interface DefaultCoordinatorParts {
  readonly store: JobStore;
  readonly nodeId: string;
  readonly worker: boolean;
  readonly events: EngineEvents;
}

/** The coordinator of a module that names none: the database's own, where the jobs are in PostgreSQL. */
export function defaultCoordinator({ store, events, ...node }: DefaultCoordinatorParts): ClusterCoordinator {
  if (!(store instanceof PostgresJobStore)) return new NoCoordinator();
  const onHealth = ({ state, detail = '' }: CoordinatorHealth): void => {
    if (state === 'connected') events.emit('coordinator', { state: 'up', detail });
    if (state === 'down') events.emit('coordinator', { state, detail });
  };
  return new PostgresCoordinator({ ...node, store, onHealth });
}
