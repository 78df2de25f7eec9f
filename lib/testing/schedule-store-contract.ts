import { contractRunner } from './contract/contract-runner.js';
import { describeFiring } from './contract/schedule-firing-contract.js';
import { describeOverlap } from './contract/schedule-overlap-contract.js';
import { describeRemoval } from './contract/schedule-removal-contract.js';
import { ScheduleBench, type ScheduleStoreSubject } from './contract/schedule-store-subject.js';
import { describeWriting } from './contract/schedule-writing-contract.js';

/**
 * What every {@link ScheduleStore} must do, as tests of the runner whose globals are present (jest, or vitest with
 * `globals: true`). `create` is called once.
 *
 * @example
 * ```ts
 * describeScheduleStoreContract('MyScheduleStore', async () => ({ schedules, jobs, close: () => jobs.close() }));
 * ```
 */
export function describeScheduleStoreContract(
  name: string,
  create: () => Promise<ScheduleStoreSubject>,
): void {
  const runner = contractRunner();
  runner.describe(`${name} keeps the contract of ScheduleStore`, () => {
    let subject: ScheduleStoreSubject | undefined;
    runner.beforeAll(async () => {
      subject = await create();
    });
    runner.afterAll(async () => {
      await subject?.close();
    });
    const bench = new ScheduleBench(runner, () => {
      if (!subject) throw new Error('The factory of the contract suite has failed');
      return subject;
    });
    runner.describe('writing', () => describeWriting(bench));
    runner.describe('firing', () => describeFiring(bench));
    runner.describe('overlap', () => describeOverlap(bench));
    runner.describe('removal', () => describeRemoval(bench));
  });
}

export { type ScheduleStoreSubject };
