import { contractRunner } from './contract/contract-runner.js';
import { describeControl } from './contract/control-contract.js';
import { describeEnded } from './contract/ended-contract.js';
import { describeFallback } from './contract/fallback-contract.js';
import { ContractBench, type JobStoreSubject } from './contract/job-store-subject.js';
import { describeKeys } from './contract/keys-contract.js';
import { describeLife } from './contract/life-contract.js';
import { describeOwnership } from './contract/ownership-contract.js';
import { describeAhead } from './contract/ahead-contract.js';
import { describeRescue } from './contract/rescue-contract.js';
import { describeUpkeep } from './contract/upkeep-contract.js';

/**
 * What every {@link JobStore} must do, as tests of the runner whose globals are present (jest, or vitest with
 * `globals: true`). `create` is called once.
 *
 * @example
 * ```ts
 * describeJobStoreContract('MyJobStore', async () => ({
 *   store, peer, transaction: (work) => pool.transaction(work), deleteBucket, close,
 * }));
 * ```
 */
export function describeJobStoreContract(name: string, create: () => Promise<JobStoreSubject>): void {
  const runner = contractRunner();
  runner.describe(`${name} keeps the contract of JobStore`, () => {
    let subject: JobStoreSubject | undefined;
    runner.beforeAll(async () => {
      subject = await create();
    });
    runner.afterAll(async () => {
      await subject?.close();
    });
    const bench = new ContractBench(runner, () => {
      if (!subject) throw new Error('The factory of the contract suite has failed');
      return subject;
    });
    runner.describe('life of a job', () => describeLife(bench));
    runner.describe('keys and transactions', () => describeKeys(bench));
    runner.describe('ownership', () => describeOwnership(bench));
    runner.describe('rescue', () => describeRescue(bench));
    runner.describe('claims ahead', () => describeAhead(bench));
    runner.describe('control', () => describeControl(bench));
    runner.describe('ends', () => describeEnded(bench));
    runner.describe('fallback', () => describeFallback(bench));
    runner.describe('upkeep', () => describeUpkeep(bench));
  });
}

export { type JobStoreSubject };
