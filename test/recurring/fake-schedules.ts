import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { NoCoordinator } from '../../lib/cluster/no-coordinator.js';
import { DebugPoints } from '../../lib/observability/debug-points.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type RecurringParts } from '../../lib/recurring/recurring-parts.js';
import { RuleCache } from '../../lib/recurring/rule-cache.js';
import {
  type DueAnswer,
  type DueSchedule,
  type FiredJob,
  type Firing,
  type FiringOutcome,
  type ScheduleMark,
  type ScheduleStore,
} from '../../lib/store/schedule-store.js';
import { FakeClock } from '../support/fake-clock.js';
import { scheduleSpec } from './schedule-fixture.js';

export const NOW = new Date('2030-06-01T10:00:00.000Z');

export function dueSchedule(overrides: Partial<DueSchedule> & { readonly id: string }): DueSchedule {
  return {
    ...scheduleSpec(overrides),
    revision: '1',
    anchor: new Date(NOW.getTime() - 86_400_000),
    nextAt: NOW,
    lastAt: undefined,
    untold: 0,
    ...overrides,
  };
}

export function dueAnswer(overrides: Partial<DueAnswer> = {}): DueAnswer {
  return {
    now: NOW,
    heldForMs: undefined,
    due: [],
    broken: [],
    more: false,
    promotable: false,
    nextInMs: undefined,
    ...overrides,
  };
}

export function firedJob(overrides: Partial<FiredJob> & { readonly scheduleId: string }): FiredJob {
  return {
    at: NOW,
    jobId: 'j',
    lane: 'default',
    priority: 2,
    name: 'work',
    missed: 0,
    dueInMs: 0,
    ...overrides,
  };
}

export function fired(firing: Firing): FiringOutcome {
  const jobs = firing.runs.map(({ at, jobId, missed, delayMs }) =>
    firedJob({ scheduleId: firing.id, at, jobId, missed, dueInMs: delayMs }),
  );
  return { id: firing.id, outcome: 'fired', jobs, skipped: [], waiting: [] };
}

/** A store that answers what a test says, and notes what it is asked. */
export class ScriptedSchedules {
  /** In turn; the last one counts from then on. */
  answers: (DueAnswer | Error | Promise<DueAnswer>)[] = [dueAnswer()];
  fires: (firings: readonly Firing[]) => Promise<readonly FiringOutcome[]> = async (firings) =>
    firings.map(fired);
  promotions: (readonly FiredJob[] | Error)[] = [];
  marks: (id: string) => Promise<boolean> = async () => true;
  readonly asked = { due: 0, promote: 0 };
  readonly firings: Firing[][] = [];
  readonly marked: { id: string; mark: ScheduleMark }[] = [];

  readonly store = {
    due: async () => {
      this.asked.due += 1;
      const answer = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
      if (answer instanceof Error) throw answer;
      return await (answer ?? dueAnswer());
    },
    fire: (firings: readonly Firing[]) => {
      this.firings.push([...firings]);
      return this.fires(firings);
    },
    promote: async () => {
      this.asked.promote += 1;
      const jobs = this.promotions.shift() ?? [];
      if (jobs instanceof Error) throw jobs;
      return jobs;
    },
    mark: async (id: string, _revision: string, mark: ScheduleMark) => {
      this.marked.push({ id, mark });
      return this.marks(id);
    },
  } as unknown as ScheduleStore;
}

/** The parts of a runner, with a clock that stands still, and what it says. */
export function scriptedParts() {
  const schedules = new ScriptedSchedules();
  const clock = new FakeClock();
  const events = new EngineEvents();
  const debug = new DebugPoints();
  const messages = new ClusterMessages(new NoCoordinator(), 'one');
  const lines: string[] = [];
  const faults: string[] = [];
  const released: string[] = [];
  const say = (line: string): void => void lines.push(line);
  const parts: RecurringParts & { readonly rules: RuleCache } = {
    store: schedules.store,
    locks: {
      tryLock: async () => true,
      renew: async () => true,
      release: async (name) => void released.push(name),
    },
    messages,
    clock,
    events,
    debug,
    logger: { log: say, warn: say, error: say },
    faults: {
      failed: (where, _error, retryInMs) => void faults.push(`${where} ${retryInMs ?? 0}`),
      worked: (where) => {
        if (faults.length > 0) faults.push(`${where} worked`);
      },
      delayMs: (failures) => failures * 100,
    },
    rules: new RuleCache(),
  };
  return { schedules, clock, events, debug, messages, lines, faults, released, parts };
}
