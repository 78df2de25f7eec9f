import { describe, expect, it } from '@jest/globals';
import { Rescuer } from '../../lib/buckets/rescuer.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type DrainedBucket, type LostReport, type NodeRef } from '../../lib/store/membership.js';
import { FakeClock, settled } from '../support/fake-clock.js';

const NODE: NodeRef = { id: 'n', epoch: '1' };

function drained(changes: Partial<DrainedBucket> = {}): DrainedBucket {
  return {
    id: 'b',
    lane: 'default',
    node: { id: 'gone', epoch: '1' },
    recovered: 0,
    failed: 0,
    stuck: [],
    ...changes,
  };
}

function report(...buckets: DrainedBucket[]): LostReport {
  return { dead: [], drained: buckets, faults: [] };
}

/** A rescuer over a store whose answers the test gives. */
class Subject {
  readonly clock = new FakeClock();
  readonly events = new EngineEvents();
  readonly told: string[] = [];
  readonly woken: (readonly string[])[] = [];
  readonly errors: string[] = [];
  readonly warnings: string[] = [];
  readonly rescuer: Rescuer;
  rounds = 0;
  #answer: ((report: LostReport) => void) | undefined;

  constructor() {
    this.events.on(
      'rescued',
      ({ recovered, failed, unbegun }) =>
        void this.told.push([`rescued ${recovered}`, failed, ...(unbegun ? [unbegun] : [])].join('/')),
    );
    this.events.on('bucket', ({ to }) => void this.told.push(`bucket ${to}`));
    this.rescuer = new Rescuer({
      store: {
        rescueLost: () => {
          this.rounds += 1;
          return new Promise((resolve) => (this.#answer = resolve));
        },
      },
      clock: this.clock,
      events: this.events,
      graceMs: 30_000,
      maxCrashRedeliveries: 3,
      logger: {
        warn: (line) => void this.warnings.push(line),
        error: (line) => void this.errors.push(line),
      },
      onWork: (lanes) => void this.woken.push(lanes),
      onFault: () => undefined,
    });
  }

  ask(): void {
    void this.rescuer.run(NODE, true);
  }

  async answer(...buckets: DrainedBucket[]): Promise<void> {
    this.#answer?.(report(...buckets));
    await settled();
  }
}

describe('Rescuer', () => {
  it('wakes only lanes in which there is work again', async () => {
    const subject = new Subject();
    subject.ask();
    await subject.answer(
      drained({ lane: 'empty' }),
      drained({ lane: 'mail', recovered: 1 }),
      drained({ lane: 'pdf', failed: 1 }),
      drained({ lane: 'locked', stuck: ['1'] }),
    );
    expect(subject.woken).toEqual([['mail', 'pdf']]);
    expect(subject.told).toEqual([
      'bucket draining',
      'bucket ready_to_delete',
      'bucket draining',
      'bucket ready_to_delete',
      'rescued 1/0',
      'bucket draining',
      'bucket ready_to_delete',
      'rescued 0/1',
    ]);
  });

  it('wakes lanes whose jobs had only been claimed ahead, and says how many', async () => {
    const subject = new Subject();
    subject.ask();
    await subject.answer(
      drained({ lane: 'mail', unbegun: 3 }),
      drained({ lane: 'pdf', recovered: 1, unbegun: 2 }),
    );
    expect(subject.woken).toEqual([['mail', 'pdf']]);
    expect(subject.warnings).toEqual([
      expect.stringContaining(
        '0 jobs to run again, 0 over the crash budget and in the dead letter; 3 jobs that had not begun, uncharged',
      ),
      expect.stringContaining(
        '1 job to run again, 0 over the crash budget and in the dead letter; 2 jobs that had not begun, uncharged',
      ),
    ]);
    expect(subject.told.filter((line) => line.startsWith('rescued'))).toEqual([
      'rescued 0/0/3',
      'rescued 1/0/2',
    ]);
  });

  it('says nothing of a round that did nothing', async () => {
    const subject = new Subject();
    subject.ask();
    await subject.answer(drained({ stuck: ['1', '2'] }));
    expect(subject.told).toEqual([]);
    expect(subject.woken).toEqual([]);
  });

  it('runs again at once when it is asked during a round', async () => {
    const subject = new Subject();
    subject.ask();
    subject.ask();
    await subject.answer(drained({ recovered: 1 }));
    expect(subject.rounds).toBe(2);
    await subject.answer();
    expect(subject.rounds).toBe(2);
  });

  it('is not kept from other buckets by rows that are stuck', async () => {
    const subject = new Subject();
    subject.ask();
    subject.ask();
    await subject.answer(drained({ recovered: 1, stuck: ['1'] }));
    expect(subject.rounds).toBe(2);
    await subject.answer();
    subject.ask();
    expect(subject.rounds).toBe(3);
  });

  it('tells of stuck rows once a minute', async () => {
    const subject = new Subject();
    for (const [waitMs, lines] of [
      [0, 1],
      [59_999, 1],
      [1, 2],
    ] as const) {
      subject.clock.advance(waitMs);
      subject.ask();
      await subject.answer(drained({ stuck: ['1'] }));
      expect(subject.errors).toHaveLength(lines);
    }
  });
});
