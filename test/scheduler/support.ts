import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { NoCoordinator } from '../../lib/cluster/no-coordinator.js';
import { type ClusterSignal, type Wakeup } from '../../lib/cluster/cluster-coordinator.js';
import { JobMaker, type JobMakerOptions } from '../../lib/scheduler/job-maker.js';
import { JobScheduler } from '../../lib/scheduler/job-scheduler.js';
import { type JobSchedulerParts } from '../../lib/scheduler/job-scheduler-parts.js';
import { type Submitted } from '../../lib/intake/intake.js';
import { type NewJob } from '../../lib/store/job-store.js';
import { noResults } from '../support/results.js';

/** A scheduler whose jobs go into a list. */
export function listScheduler(
  overrides: {
    answer?: (job: NewJob) => Submitted;
    maker?: Partial<JobMakerOptions>;
    store?: Partial<JobSchedulerParts['store']>;
  } = {},
) {
  const jobs: NewJob[] = [];
  const transactions: unknown[] = [];
  const wakeups: Wakeup[] = [];
  const signals: ClusterSignal[] = [];
  const messages = new ClusterMessages(new NoCoordinator(), 'test-node');
  messages.onWakeup((wakeup) => wakeups.push(wakeup));
  messages.onSignal((signal) => signals.push(signal));
  const answer = overrides.answer ?? (({ id }) => ({ outcome: 'created', id }));
  const maker = new JobMaker({
    payloadBytes: 1_000_000,
    idempotencyExpiryMs: 86_400_000,
    ...overrides.maker,
  });
  const unasked = () => Promise.reject(new Error('the store was asked'));
  const scheduler = new JobScheduler({
    maker,
    messages,
    results: noResults,
    intake: {
      async submit(making, transaction) {
        const job = await making;
        jobs.push(job);
        transactions.push(transaction);
        return answer(job);
      },
      async submitMany(making, transaction) {
        const many = await making;
        jobs.push(...many);
        transactions.push(transaction);
        return many.map(answer);
      },
      async submitBuffered(making) {
        jobs.push(...(await making));
        return { saved: Promise.resolve() };
      },
      inTransaction: () => false,
    },
    store: {
      get: unasked,
      executions: unasked,
      cancel: unasked,
      redrive: unasked,
      holderOf: unasked,
      find: unasked,
      count: unasked,
      countControllable: unasked,
      control: unasked,
      ...overrides.store,
    },
  });
  return { scheduler, maker, jobs, transactions, wakeups, signals };
}
