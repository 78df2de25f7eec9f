import { ContractParty, type CoordinatorBench } from './coordinator-subject.js';

/** A transport that goes away costs latency, and nothing else. */
export function describeOutages(bench: CoordinatorBench): void {
  const { expect, it } = bench.runner;

  it('goes on after an outage, and tells that messages may have been missed', async () => {
    const [a, b] = (await bench.parties('a', 'b')) as [ContractParty, ContractParty];
    await bench.subject.cutTransport?.();
    await bench.until('the outage shows', () =>
      [a, b].every((party) => party.coordinator.health().state !== 'connected'),
    );
    for (let n = 0; n < 100; n += 1) a.wake(bench.lane());
    const before = b.catchUps;
    await bench.subject.restoreTransport?.();
    await bench.until('the listener is told to catch up', () => b.catchUps > before);
    await bench.hearEachOther([a, b]);
    expect([a, b].some((party) => party.coordinator.health().state === 'down')).toBe(false);
    await bench.closeAll();
  });

  it('begins during an outage, and connects when it is over', async () => {
    await bench.subject.cutTransport?.();
    const parties = [
      new ContractParty('a', await bench.create()),
      new ContractParty('b', await bench.create()),
    ];
    parties[0]?.wake(bench.lane());
    await bench.subject.restoreTransport?.();
    await bench.hearEachOther(parties);
    await bench.closeAll();
  });

  it('closes in bounded time during an outage', async () => {
    const [a] = (await bench.parties('a', 'b')) as [ContractParty];
    await bench.subject.cutTransport?.();
    a.wake(bench.lane());
    await bench.soon('close', bench.closeAll());
    await bench.subject.restoreTransport?.();
  });
}
