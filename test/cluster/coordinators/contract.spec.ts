import { NoCoordinator } from '../../../lib/cluster/no-coordinator.js';
import { describeCoordinatorContract } from '../../../lib/testing/coordinator-contract.js';
import { MemoryCoordinator, MemoryHub } from './memory-coordinator.js';
import { PostgresFixture } from './postgres-fixture.js';

describeCoordinatorContract(
  'PostgresCoordinator',
  async () => {
    const fixture = await PostgresFixture.create();
    return {
      create: () => fixture.make().coordinator,
      cutTransport: () => fixture.network.refuse(),
      restoreTransport: () => fixture.network.restore(),
      close: () => fixture.close(),
    };
  },
  { canBeCut: true },
);

describeCoordinatorContract('BroadcastCoordinator', () => {
  const hub = new MemoryHub();
  return { create: () => new MemoryCoordinator(hub), close: () => undefined };
});

describeCoordinatorContract(
  'NoCoordinator',
  () => ({ create: () => new NoCoordinator(), close: () => undefined }),
  { carries: false },
);
