import { type ClusterCoordinator } from '../../cluster/cluster-coordinator.js';
import { type CoordinatorBench } from './coordinator-subject.js';

const STATES = ['none', 'connected', 'connecting', 'down'];

/** What holds for a coordinator that tells nobody anything, too. */
export function describeManners(bench: CoordinatorBench): void {
  const { expect, it } = bench.runner;

  const speak = (coordinator: ClusterCoordinator): unknown[] => [
    coordinator.notifyNewWork(2, 'a', bench.lane()),
    coordinator.notifyNewWork(4, 'a', bench.lane(), { dueInMs: 5, behind: true }),
    coordinator.publish({ kind: 'cancel', source: 'a', jobId: 'j' }),
    coordinator.publish({ kind: 'ended', source: 'a', jobId: 'j', claimSeq: '1' }),
  ];

  it('speaks before anybody listens, without a wait and without a throw', async () => {
    const coordinator = await bench.create();
    expect(speak(coordinator)).toEqual([undefined, undefined, undefined, undefined]);
    await bench.closeAll();
  });

  it('speaks after its close without a throw', async () => {
    const [party] = await bench.parties('a', 'b');
    await bench.soon('close', bench.closeAll());
    expect(party && speak(party.coordinator)).toEqual([undefined, undefined, undefined, undefined]);
  });

  it('takes and forgets listeners at any time, each as often as it is told to', async () => {
    const coordinator = await bench.create();
    const register = (): (() => void)[] => [
      coordinator.registerWakeupListener(() => undefined),
      coordinator.registerSignalListener(() => undefined),
      coordinator.registerCatchUpListener(() => undefined),
    ];
    for (const off of register()) {
      off();
      off();
    }
    await bench.soon('close', coordinator.close());
    for (const off of register()) off();
    await bench.closeAll();
  });

  it('closes twice, and while it connects', async () => {
    const unused = await bench.create();
    await bench.soon('close', Promise.all([unused.close(), unused.close()]));
    const connecting = await bench.create();
    connecting.registerWakeupListener(() => undefined);
    await bench.soon('close', Promise.all([connecting.close(), connecting.close()]));
    await bench.soon('close', connecting.close());
    await bench.closeAll();
  });

  it('says how it is, at any time', async () => {
    const coordinator = await bench.create();
    const states = [coordinator.health().state];
    coordinator.registerWakeupListener(() => undefined);
    states.push(coordinator.health().state);
    await bench.soon('close', coordinator.close());
    states.push(coordinator.health().state);
    expect(states.filter((state) => !STATES.includes(state))).toEqual([]);
    await bench.closeAll();
  });
}
