import { describe, expect, it } from '@jest/globals';
import { LaneWaits } from '../../lib/scheduler/results/lane-waits.js';
import { laneOf } from '../support/engine-node.js';

class Subject {
  readonly lines: string[] = [];
  nowMs = 0;
  readonly waits: LaneWaits;

  constructor(reserved: number) {
    const say =
      (level: string) =>
      (message: string): void =>
        void this.lines.push(`${level}: ${message}`);
    const logger = { log: say('log'), warn: say('warn'), error: say('error'), debug: say('debug') };
    const lanes = new Map([['pages', laneOf({ concurrency: 3, reserved })]]);
    this.waits = new LaneWaits({ concurrency: 3, lanes }, { monotonicMs: () => this.nowMs }, logger);
  }

  book(): (() => void) | undefined {
    return this.waits.enter({ name: 'book', lane: 'default' }, { name: 'page', lane: 'pages' });
  }
}

describe('handlers that await jobs of another lane', () => {
  it('are an error when they hold all slots of the node, once a minute', () => {
    const subject = new Subject(0);
    const leave = [subject.book(), subject.book(), subject.book()];
    expect(subject.lines).toEqual([
      'error: all 3 slots of this node are held by handlers that await jobs that have no slots of their own (the last: book, which awaits page): ' +
        "on this node nothing is left to run them; keep slots for them: lanes: { 'pages': { reserved: 1 } }, and meanwhile start a further node or " +
        'cancel a waiting job',
    ]);
    for (const end of leave) end?.();
    subject.nowMs = 120_000;
    subject.book();
    subject.book();
    expect(subject.lines).toHaveLength(1);
    subject.book();
    expect(subject.lines).toHaveLength(2);
  });

  it('are in no danger when that lane has slots reserved', () => {
    const subject = new Subject(1);
    for (let n = 0; n < 5; n += 1) subject.book();
    expect(subject.lines).toEqual([]);
  });
});
