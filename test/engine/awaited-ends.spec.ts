import { describe, expect, it } from '@jest/globals';
import { ClusterCoordinator, type ClusterSignal } from '../../lib/cluster/cluster-coordinator.js';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { AwaitedEnds } from '../../lib/engine/awaited-ends.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { FakeClock } from '../support/fake-clock.js';

/** What other processes say, and what this one publishes. */
class Cluster extends ClusterCoordinator {
  readonly published: ClusterSignal[] = [];
  hear: (signal: ClusterSignal) => void = () => {};

  override publish(signal: ClusterSignal): void {
    this.published.push(signal);
  }

  override registerSignalListener(listener: (signal: ClusterSignal) => void): () => void {
    this.hear = listener;
    return () => (this.hear = () => {});
  }

  override notifyNewWork(): void {}

  override registerWakeupListener(): () => void {
    return () => {};
  }

  override close(): Promise<void> {
    return Promise.resolve();
  }
}

function setUp() {
  const cluster = new Cluster();
  const messages = new ClusterMessages(cluster, 'here');
  const events = new EngineEvents();
  const clock = new FakeClock();
  const ends = new AwaitedEnds({ messages, events, clock });
  ends.start();
  const awaited = (jobId: string, source = 'there'): void => cluster.hear({ kind: 'awaited', source, jobId });
  const settle = (jobId: string, outcome = 'succeeded'): void =>
    events.emit('settled', { jobId, outcome } as never);
  const told = (): string[] =>
    cluster.published.map((signal) => `${signal.kind} ${'jobId' in signal ? signal.jobId : signal.lane}`);
  return { cluster, messages, events, clock, ends, awaited, settle, told };
}

describe('the ends of jobs that other processes await', () => {
  it.each([
    [
      'a success',
      (events: EngineEvents) => events.emit('settled', { jobId: 'j', outcome: 'succeeded' } as never),
    ],
    [
      'a failure for good',
      (events: EngineEvents) => events.emit('settled', { jobId: 'j', outcome: 'failed' } as never),
    ],
    ['a job that a rescue buries', (events: EngineEvents) => events.emit('buried', { jobId: 'j' } as never)],
    ['a cancel', (events: EngineEvents) => events.emit('withdrawn', { jobId: 'j', running: false })],
    [
      'a cancel that is heard of',
      (events: EngineEvents) => events.emit('canceled', { jobId: 'j', claimSeq: '1' }),
    ],
  ])('are told once: %s', (_, end) => {
    const { events, awaited, told } = setUp();
    awaited('j');
    end(events);
    end(events);
    expect(told()).toEqual(['ended j']);
    expect(events.heard('settled')).toBe(false);
  });

  it('are told of no job that nobody awaits, that goes on, or that only this process awaits', () => {
    const { events, messages, awaited, settle, told } = setUp();
    expect(events.heard('settled')).toBe(false);
    messages.signal({ kind: 'awaited', jobId: 'own' });
    awaited('own', 'here');
    awaited('j');
    settle('other');
    settle('own');
    settle('j', 'retried');
    expect(told()).toEqual(['awaited own']);
  });

  it('need not be told when another node has told of them', () => {
    const { cluster, events, awaited, settle, told } = setUp();
    awaited('j');
    cluster.hear({ kind: 'ended', source: 'third', jobId: 'j' });
    expect(events.heard('settled')).toBe(false);
    settle('j');
    expect(told()).toEqual([]);
  });

  it('are kept for ten minutes, a thousand of them', () => {
    const { events, clock, awaited, settle, told } = setUp();
    for (let n = 0; n < 1_001; n += 1) awaited(`j${n}`);
    settle('j0');
    settle('j1');
    expect(told()).toEqual(['ended j1']);
    clock.advance(300_000);
    awaited('later');
    clock.advance(300_000);
    settle('j2');
    expect(events.heard('settled')).toBe(true);
    clock.advance(600_000);
    settle('later');
    expect(told()).toEqual(['ended j1']);
    expect(events.heard('settled')).toBe(false);
    expect(clock.pending).toBe(0);
  });

  it('leave nothing behind when the node stops', () => {
    const { ends, events, clock, awaited } = setUp();
    awaited('j');
    ends.stop();
    ends.stop();
    awaited('k');
    expect(events.heard('settled')).toBe(false);
    expect(clock.pending).toBe(0);
  });
});
