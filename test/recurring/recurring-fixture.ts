import { type JobContext } from '../../lib/jobs/job-context.js';
import { type RecurringContext } from '../../lib/jobs/recurring-context.js';
import { type AnnotatedSchedule, type ScheduleSpec } from '../../lib/jobs/schedule-spec.js';
import { PostgresScheduleStore } from '../../lib/store/postgres/postgres-schedule-store.js';
import { type OccurrenceRow, type ScheduleRow, type ScheduleStore } from '../../lib/store/schedule-store.js';
import { engineFixture, type EngineFixture, type Node } from '../engine/engine-fixture.js';
import { type EngineNodeOptions, type TestHandler } from '../support/engine-node.js';
import { jobTemplate, scheduleSpec } from './schedule-fixture.js';

/** What a method was told. */
export interface SeenRun {
  readonly id: string;
  readonly scheduledFor: Date;
  readonly previous: Date | undefined;
  readonly missed: number;
  readonly jobId: string;
  readonly startedAt: Date;
}

export interface RecurringFixture extends EngineFixture {
  readonly runs: SeenRun[];
  /** A method that notes its runs. What `body` does comes after that. */
  method(body?: TestHandler): TestHandler;
  /** Resolves when so many runs were noted, of one schedule or of all. */
  ran(count: number, id?: string): Promise<void>;
  schedules(node: Node): ScheduleStore;
  row(id: string): Promise<ScheduleRow>;
  /** Oldest first. */
  occurrences(id: string): Promise<OccurrenceRow[]>;
  /** As if nobody had been there: an hourly interval whose oldest due occurrence was so long ago. Occurrences are on the second. */
  away(id: string, oldestAgo: string): Promise<void>;
}

/** The annotation of a method that has no `@Job`. */
export function annotated(
  spec: Partial<ScheduleSpec> & { readonly id: string },
  template: Parameters<typeof jobTemplate>[0] = {},
): AnnotatedSchedule {
  const full = scheduleSpec({ template: jobTemplate(template), ...spec });
  return { spec: full, method: full.id, jobName: full.template.name, takesPayload: false };
}

/** {@link engineFixture} for nodes with recurring schedules. */
export function recurringFixture(): RecurringFixture {
  const engine = engineFixture();
  const runs: SeenRun[] = [];
  const waiters = new Set<() => void>();
  let reader: PostgresScheduleStore | undefined;
  const store = (node: Node): PostgresScheduleStore => new PostgresScheduleStore(node.real);
  const asked = (): PostgresScheduleStore => {
    if (!reader) throw new Error('no node was made yet');
    return reader;
  };
  return {
    get database() {
      return engine.database;
    },
    logs: engine.logs,
    runs,
    async node(options: EngineNodeOptions, url?: string) {
      const node = await engine.node(options, url);
      if (!reader) runs.length = 0;
      reader = store(node);
      return node;
    },
    method(body) {
      return async (payload, context: JobContext) => {
        const { scheduleId, scheduledFor, previous, missed, jobId } = context as RecurringContext;
        runs.push({ id: scheduleId, scheduledFor, previous, missed, jobId, startedAt: new Date() });
        for (const wake of [...waiters]) wake();
        return body?.(payload, context);
      };
    },
    ran(count, id) {
      return new Promise((resolve) => {
        const look = (): void => {
          if (runs.filter((run) => id === undefined || run.id === id).length < count) return;
          waiters.delete(look);
          resolve();
        };
        waiters.add(look);
        look();
      });
    },
    schedules: store,
    async row(id) {
      const { schedules } = await asked().byIds([id]);
      const [row] = schedules;
      if (!row) throw new Error(`there is no schedule ${id}`);
      return row;
    },
    async occurrences(id) {
      return (await asked().occurrences({ scheduleId: id, limit: 2_000 })).toReversed();
    },
    async away(id, oldestAgo) {
      await engine.database.query(
        `with t as (select date_trunc('milliseconds', clock_timestamp()) - $2::interval as oldest)
         update ratchet.schedule s set next_at = t.oldest, anchor_at = t.oldest - interval '1 hour' from t where s.id = $1`,
        [id, oldestAgo],
      );
    },
  };
}
