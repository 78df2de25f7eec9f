import { type ClusterSignal, type WakeupHint } from '../../cluster/cluster-coordinator.js';
import { type PriorityRank } from '../../jobs/priority.js';
import { type ContractParty, type CoordinatorBench } from './coordinator-subject.js';

const BURST = 10_000;
const BURST_LANES = 7;
/** A burst takes some milliseconds; at one wakeup a lane every 20 ms this is generous. */
const MOST_OF_A_BURST = BURST / 10;

/** What others hear, and who does not. */
export function describeMessages(bench: CoordinatorBench): void {
  const { expect, it } = bench.runner;

  it('carries wakeups with all that they say, to all others, not to the sender', async () => {
    const [a, b, c] = (await bench.parties('a', 'b', 'c')) as [ContractParty, ContractParty, ContractParty];
    const hints: [PriorityRank, WakeupHint][] = [
      [0, {}],
      [4, { behind: true }],
      [3, { dueInMs: 60_000 }],
    ];
    for (const [priority, hint] of hints) {
      const lane = bench.lane();
      a.coordinator.notifyNewWork(priority, 'a', lane, hint);
      await bench.heardSoFar(a, b, c);
      for (const { wakeups } of [b, c]) {
        const [heard, ...more] = wakeups.filter((wakeup) => wakeup.lane === lane);
        const { dueInMs = 0, ...rest } = heard ?? {};
        const { dueInMs: saidMs = 0, ...said } = hint;
        expect(rest).toEqual({ lane, priority, source: 'a', ...said });
        // Time has passed on the way; nobody's clock is asked how much.
        expect(saidMs === 0 ? dueInMs === 0 : dueInMs > saidMs / 2 && dueInMs <= saidMs).toBe(true);
        expect(more).toEqual([]);
      }
      expect(a.hasHeard(lane)).toBe(false);
    }
    await bench.closeAll();
  });

  it('carries signals with all that they say, to all others, not to the sender', async () => {
    const [a, b, c] = (await bench.parties('a', 'b', 'c')) as [ContractParty, ContractParty, ContractParty];
    const signals: ClusterSignal[] = [
      {
        kind: 'cancel',
        source: 'a',
        jobId: '01890a5d-ac96-774b-bcce-b302099a8057',
        claimSeq: '9007199254740993',
      },
      { kind: 'ended', source: 'a', jobId: '01890a5d-ac96-774b-bcce-b302099a8058' },
      { kind: 'awaited', source: 'a', jobId: '01890a5d-ac96-774b-bcce-b302099a8059' },
      { kind: 'hungry', source: 'a', lane: 'mail' },
    ];
    for (const signal of signals) a.coordinator.publish(signal);
    await bench.heardSoFar(a, b, c);
    const inOrder = (heard: readonly ClusterSignal[]): ClusterSignal[] =>
      [...heard].sort((one, other) => keyOf(one).localeCompare(keyOf(other)));
    expect(inOrder(b.signals)).toEqual(signals);
    expect(inOrder(c.signals)).toEqual(signals);
    expect(a.signals).toEqual([]);
    await bench.closeAll();
  });

  it('carries between two processes that have the same node id', async () => {
    const [one, other] = (await bench.parties('pod', 'pod')) as [ContractParty, ContractParty];
    const lane = bench.lane();
    one.wake(lane);
    await bench.heardSoFar(one, other);
    expect(other.hasHeard(lane)).toBe(true);
    expect(one.hasHeard(lane)).toBe(false);
    await bench.closeAll();
  });

  it('carries names that are not plain', async () => {
    const [a, b] = (await bench.parties('a', 'b')) as [ContractParty, ContractParty];
    const lane = `${bench.lane()} "quoted" 'n' \\ %s\n\u{1F427} Größe`;
    a.wake(lane);
    await bench.heardSoFar(a, b);
    expect(b.hasHeard(lane)).toBe(true);
    await bench.closeAll();
  });

  it('tells every listener, also when one throws, and none that has unregistered', async () => {
    const [a, b] = (await bench.parties('a', 'b')) as [ContractParty, ContractParty];
    const fail = (): never => {
      throw new Error('a listener of the contract suite throws on purpose');
    };
    b.coordinator.registerWakeupListener(fail);
    b.coordinator.registerSignalListener(fail);
    const heard: string[] = [];
    const lane = bench.lane();
    b.coordinator.registerWakeupListener((wakeup) => void heard.push(wakeup.lane));
    b.coordinator.registerSignalListener((signal) => void heard.push(keyOf(signal)));
    const off = b.coordinator.registerWakeupListener(() => void heard.push('unregistered'));
    off();
    a.coordinator.publish({ kind: 'cancel', source: 'a', jobId: 'j' });
    a.wake(lane);
    await bench.heardSoFar(a, b);
    expect(heard.filter((what) => what === 'j').length).toBe(1);
    expect(heard.filter((what) => what === lane).length).toBe(1);
    expect(heard.includes('unregistered')).toBe(false);
    await bench.closeAll();
  });

  it('gathers a burst: each lane is told of, and not ten thousand times', async () => {
    const [a, b] = (await bench.parties('a', 'b')) as [ContractParty, ContractParty];
    const before = b.wakeups.length;
    const lanes = Array.from({ length: BURST_LANES }, () => bench.lane());
    for (let n = 0; n < BURST; n += 1) {
      const priority = (n % 5) as PriorityRank;
      a.coordinator.notifyNewWork(
        priority,
        'a',
        lanes[n % BURST_LANES] ?? '',
        n === 0 ? { behind: true } : {},
      );
    }
    await bench.heardSoFar(a, b);
    const heard = b.wakeups.slice(before);
    expect(lanes.filter((lane) => !b.hasHeard(lane))).toEqual([]);
    expect(heard.length < MOST_OF_A_BURST).toBe(true);
    expect(lanes.every((lane) => heard.some((one) => one.lane === lane && one.priority === 4))).toBe(true);
    expect(heard.some(({ lane, behind }) => lane === lanes[0] && behind === true)).toBe(true);
    await bench.closeAll();
  });

  it('is heard no more after its close, and hears no more', async () => {
    const [a, b, c] = (await bench.parties('a', 'b', 'c')) as [ContractParty, ContractParty, ContractParty];
    await bench.soon('close', a.coordinator.close());
    const lanes = [bench.lane(), bench.lane()] as const;
    a.wake(lanes[0]);
    b.wake(lanes[1]);
    await bench.heardSoFar(b, c);
    expect(c.hasHeard(lanes[0])).toBe(false);
    expect(a.hasHeard(lanes[1])).toBe(false);
    await bench.closeAll();
  });
}

const keyOf = (signal: ClusterSignal): string => (signal.kind === 'hungry' ? signal.lane : signal.jobId);
