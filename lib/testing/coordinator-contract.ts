import { contractRunner } from './contract/contract-runner.js';
import { describeMessages } from './contract/coordinator-messages-contract.js';
import { describeManners } from './contract/coordinator-manners-contract.js';
import { describeOutages } from './contract/coordinator-outage-contract.js';
import { CoordinatorBench, type CoordinatorSubject } from './contract/coordinator-subject.js';

/**
 * What every {@link ClusterCoordinator} must do, as tests of the runner whose globals are present (jest, or vitest with
 * `globals: true`). `create` is called once; allow each test 30 seconds.
 *
 * @param traits - what the tests need to know before the subject exists: whether it `carries` messages at all (the default), and
 * whether its transport `canBeCut` (then the subject has `cutTransport` and `restoreTransport`; not the default).
 *
 * @example
 * ```ts
 * describeCoordinatorContract('RedisCoordinator', async () => {
 *   const redis = await startRedis();
 *   return { create: () => new RedisCoordinator(redis.connect()), close: () => redis.stop() };
 * });
 * ```
 */
export function describeCoordinatorContract(
  name: string,
  create: () => Promise<CoordinatorSubject> | CoordinatorSubject,
  traits: { readonly carries?: boolean; readonly canBeCut?: boolean } = {},
): void {
  const { carries = true, canBeCut = false } = traits;
  const runner = contractRunner();
  runner.describe(`${name} keeps the contract of ClusterCoordinator`, () => {
    const bench = new CoordinatorBench(runner, carries, async () => create());
    runner.beforeAll(() => bench.open());
    runner.afterAll(() => bench.end());
    runner.describe('manners', () => describeManners(bench));
    if (carries) runner.describe('messages', () => describeMessages(bench));
    if (carries && canBeCut) runner.describe('outages', () => describeOutages(bench));
  });
}

export { type CoordinatorSubject };
