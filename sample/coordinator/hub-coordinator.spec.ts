import { describeCoordinatorContract } from 'nestjs-ratchet/testing';
import { Hub } from './hub.js';
import { HubCoordinator } from './hub-coordinator.js';

describeCoordinatorContract(
  'HubCoordinator',
  async () => {
    let hub = new Hub();
    const port = await hub.listen();
    return {
      create: () => new HubCoordinator(port),
      cutTransport: () => hub.close(),
      async restoreTransport() {
        hub = new Hub();
        await hub.listen(port);
      },
      close: () => hub.close(),
    };
  },
  { canBeCut: true },
);
