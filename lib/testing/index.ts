/**
 * For tests of applications ({@link RatchetTestingModule}, {@link manualRatchet}, {@link RatchetTester}) and of ports of
 * one's own (the contract suites). Needs no test runner of its own.
 *
 * @packageDocumentation
 */
export { manualRatchet, type OverridableBuilder } from './manual-ratchet.js';
export { type EnqueuedJob, type RanJob } from './ran-job.js';
export {
  RatchetTester,
  type AppUnderTest,
  type DrainJobsOptions,
  type FireOptions,
} from './ratchet-tester.js';
export { RatchetTestingModule } from './ratchet-testing.module.js';
export { type RatchetTestingOptions } from './ratchet-testing.options.js';
export * from './testing-errors.js';

export { describeBucketStoreContract, type BucketStoreSubject } from './bucket-store-contract.js';
export { describeCoordinatorContract, type CoordinatorSubject } from './coordinator-contract.js';
export { describeJobStoreContract, type JobStoreSubject } from './job-store-contract.js';
export { describeLockStoreContract, type LockStoreSubject } from './lock-store-contract.js';
export { describeScheduleStoreContract, type ScheduleStoreSubject } from './schedule-store-contract.js';
