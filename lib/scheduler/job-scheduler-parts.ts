import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type Intake } from '../intake/intake.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type JobStore } from '../store/job-store.js';
import { type JobControlParts } from './job-control.js';
import { type JobFinderStore } from './job-finder.js';
import { type JobMaker } from './job-maker.js';
import { type Results } from './results/result-waiter.js';

/** What a {@link JobScheduler} is made of. */
export interface JobSchedulerParts {
  readonly intake: Pick<Intake, 'submit' | 'submitMany' | 'submitBuffered' | 'inTransaction'>;
  readonly maker: JobMaker;
  readonly store: Pick<JobStore, 'get' | 'executions'> & JobFinderStore & JobControlParts['store'];
  readonly messages: Pick<ClusterMessages, 'newWork' | 'signal'>;
  /** Told of what was canceled. */
  readonly events?: EngineEvents | undefined;
  readonly results: Results;
}
