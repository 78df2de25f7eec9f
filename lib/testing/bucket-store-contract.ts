import { describeActs } from './contract/bucket-acts-contract.js';
import { describeListing } from './contract/bucket-listing-contract.js';
import { describeMoves } from './contract/bucket-moves-contract.js';
import { BucketBench, type BucketStoreSubject } from './contract/bucket-store-subject.js';
import { contractRunner } from './contract/contract-runner.js';
import { describeAgreement } from './contract/switched-off-contract.js';

/**
 * What every {@link BucketStore} must do, as tests of the runner whose globals are present (jest, or vitest with
 * `globals: true`). `create` is called once.
 *
 * @example
 * ```ts
 * describeBucketStoreContract('MyBucketStore', async () => ({ buckets, jobs, close: () => jobs.close() }));
 * ```
 */
export function describeBucketStoreContract(name: string, create: () => Promise<BucketStoreSubject>): void {
  const runner = contractRunner();
  runner.describe(`${name} keeps the contract of BucketStore`, () => {
    let subject: BucketStoreSubject | undefined;
    runner.beforeAll(async () => {
      subject = await create();
    });
    runner.afterAll(async () => {
      await subject?.close();
    });
    const bench = new BucketBench(runner, () => {
      if (!subject) throw new Error('The factory of the contract suite has failed');
      return subject;
    });
    runner.describe('lists', () => describeListing(bench));
    runner.describe('acts', () => describeActs(bench));
    runner.describe('moves', () => describeMoves(bench));
    runner.describe('priorities', () => describeAgreement(bench));
  });
}

export { type BucketStoreSubject };
