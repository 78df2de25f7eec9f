import { RatchetError } from '../errors/ratchet-error.js';
import { showValue } from '../errors/show-value.js';

/** Something was asked of `RatchetTestingModule` that only a database can do. */
export class TestingNeedsDatabaseError extends RatchetError {
  override readonly code = 'TESTING_NEEDS_DATABASE';

  constructor(readonly what: string) {
    super(
      `TESTING_NEEDS_DATABASE: ${what}: RatchetTestingModule has no database; ` +
        'test this with the real RatchetModule on a real one: manualRatchet(Test.createTestingModule(…))',
    );
  }
}

/** `runNext` was called and no job could be run now. The message says which jobs wait, and for what. */
export class NothingDueError extends RatchetError {
  override readonly code = 'TESTING_NOTHING_DUE';

  constructor(asked: string, waiting: readonly string[]) {
    const rest = waiting.length > SHOWN ? [`and ${waiting.length - SHOWN} more`] : [];
    const lines = [...waiting.slice(0, SHOWN), ...rest].map((line) => `\n  ${line}`);
    super(`TESTING_NOTHING_DUE: ${asked}${lines.join('')}`);
  }
}

const SHOWN = 10;

/** `drain` ran more jobs than its limit: most likely one that enqueues itself, or snoozes without a delay. */
export class EndlessDrainError extends RatchetError {
  override readonly code = 'TESTING_ENDLESS_DRAIN';

  constructor(
    readonly limit: number,
    busiest: string,
  ) {
    super(
      `TESTING_ENDLESS_DRAIN: drain: ${limit} executions, and there is still a job due; most of them were of ${busiest}; ` +
        'is there a job that enqueues itself, or snoozes without a delay? (drain({ limit }) allows more)',
    );
  }
}

/** Time can only move on, by a duration or to a date. */
export class InvalidTravelError extends RatchetError {
  override readonly code = 'TESTING_INVALID_TRAVEL';

  constructor(call: string, value: unknown, allowed: string) {
    super(`TESTING_INVALID_TRAVEL: ${call}: ${showValue(value)} is wrong; allowed: ${allowed}`);
  }
}

/** The application has no tester: its engine runs by itself. */
export class NoTesterError extends RatchetError {
  override readonly code = 'TESTING_NO_TESTER';

  constructor() {
    super(
      'TESTING_NO_TESTER: RatchetTester.of: this application is not under test; ' +
        'import RatchetTestingModule.forRoot() instead of RatchetModule, or make it of manualRatchet(Test.createTestingModule(…))',
    );
  }
}
