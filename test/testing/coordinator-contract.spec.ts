import { describe, expect, it } from '@jest/globals';
import { type ClusterCoordinator, NoCoordinator } from 'nestjs-ratchet';
import { MemoryCoordinator, MemoryHub } from '../cluster/coordinators/memory-coordinator.js';
import { contractRunner } from '../../lib/testing/contract/contract-runner.js';
import { CoordinatorBench } from '../../lib/testing/contract/coordinator-subject.js';
import { describeManners } from '../../lib/testing/contract/coordinator-manners-contract.js';
import { describeMessages } from '../../lib/testing/contract/coordinator-messages-contract.js';

/** Runs a part of the suite outside the runner, and returns the names of the tests that fail. */
async function failing(
  part: (bench: CoordinatorBench) => void,
  create: () => ClusterCoordinator,
): Promise<string[]> {
  const tests = new Map<string, () => Promise<void>>();
  const collector = {
    ...contractRunner(),
    it: (name: string, body: () => Promise<void>) => void tests.set(name, body),
  };
  const bench = new CoordinatorBench(collector, true, async () => ({ create, close: () => undefined }), 500);
  part(bench);
  await bench.open();
  const failed: string[] = [];
  for (const [name, body] of tests) {
    await body().catch(() => failed.push(name));
    await bench.closeAll().catch(() => undefined);
  }
  return failed;
}

const faulty = (change: (coordinator: MemoryCoordinator) => void): (() => ClusterCoordinator) => {
  const hub = new MemoryHub();
  return () => {
    const coordinator = new MemoryCoordinator(hub);
    change(coordinator);
    return coordinator;
  };
};

describe('describeCoordinatorContract', () => {
  it('finds no fault in one that has none', async () => {
    expect(
      await failing(
        describeManners,
        faulty(() => undefined),
      ),
    ).toEqual([]);
    expect(
      await failing(
        describeMessages,
        faulty(() => undefined),
      ),
    ).toEqual([]);
  });

  it('refuses one that carries nothing', async () => {
    expect(await failing(describeMessages, () => new NoCoordinator())).toHaveLength(7);
  });

  it('refuses one that hears itself', async () => {
    const failed = await failing(
      describeMessages,
      faulty((coordinator) => {
        const listeners = new Set<(wakeup: never) => void>();
        const register = coordinator.registerWakeupListener.bind(coordinator);
        coordinator.registerWakeupListener = (listener) => {
          listeners.add(listener);
          return register(listener);
        };
        const notify = coordinator.notifyNewWork.bind(coordinator);
        coordinator.notifyNewWork = (priority, source, lane, hint) => {
          for (const hear of listeners) hear({ priority, source, lane, ...hint } as never);
          notify(priority, source, lane, hint);
        };
      }),
    );
    expect(failed).toContain('carries wakeups with all that they say, to all others, not to the sender');
  });

  it('refuses one that forgets what a wakeup says', async () => {
    const failed = await failing(
      describeMessages,
      faulty((coordinator) => {
        const notify = coordinator.notifyNewWork.bind(coordinator);
        coordinator.notifyNewWork = (priority, source, lane) => notify(priority, source, lane);
      }),
    );
    expect(failed).toContain('carries wakeups with all that they say, to all others, not to the sender');
    expect(failed).toContain('gathers a burst: each lane is told of, and not ten thousand times');
  });

  it('refuses one that throws when it speaks after its close', async () => {
    const failed = await failing(
      describeManners,
      faulty((coordinator) => {
        const publish = coordinator.publish.bind(coordinator);
        coordinator.publish = (signal) => {
          if (coordinator.closed > 0) throw new Error('closed');
          publish(signal);
        };
      }),
    );
    expect(failed).toEqual(['speaks after its close without a throw']);
  });

  it('refuses one that does not end its close', async () => {
    const failed = await failing(
      describeManners,
      faulty((coordinator) => {
        coordinator.close = () => new Promise(() => undefined);
      }),
    );
    expect(failed).toContain('closes twice, and while it connects');
  });
});
