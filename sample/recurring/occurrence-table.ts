import { type INestApplicationContext } from '@nestjs/common';
import { JobScheduler, RecurringScheduler } from 'nestjs-ratchet';
import { TICK } from './tick.jobs.js';

/** What the database says of one occurrence. */
export interface TickRow {
  readonly scheduledFor: Date;
  readonly outcome: string;
  /** Of each execution; more than one when its process was killed just then. */
  readonly nodes: readonly string[];
}

/** Oldest first. */
export async function readTicks(app: INestApplicationContext): Promise<TickRow[]> {
  const [recurring, scheduler] = [app.get(RecurringScheduler), app.get(JobScheduler)];
  const rows: TickRow[] = [];
  for (const { scheduledFor, outcome, jobId, jobStatus } of await recurring.occurrences(TICK, {
    limit: 1_000,
  })) {
    const executions = jobId === undefined ? [] : await scheduler.executions(jobId);
    rows.unshift({
      scheduledFor,
      outcome: jobStatus ?? outcome,
      nodes: executions.map(({ node = '?', outcome }) =>
        outcome === 'succeeded' ? node : `${node} (${outcome})`,
      ),
    });
  }
  return rows;
}

/** Waits for the jobs of those that there are: one whose process was killed runs on another a few seconds later. */
export async function allEnded(app: INestApplicationContext): Promise<void> {
  const [recurring, scheduler] = [app.get(RecurringScheduler), app.get(JobScheduler)];
  for (const { jobId } of await recurring.occurrences(TICK, { limit: 1_000 })) {
    if (jobId !== undefined) await scheduler.handle(jobId).result({ timeout: '30s' });
  }
}

/** Prints them, and says whether each second has one run. */
export function printTicks(rows: readonly TickRow[]): boolean {
  console.log('occurrence     node');
  for (const { scheduledFor, outcome, nodes } of rows) {
    const note = outcome === 'succeeded' ? '' : `  ${outcome}`;
    console.log(`${scheduledFor.toISOString().slice(11, 19)}       ${nodes.join(', then ')}${note}`);
  }
  const first = rows[0]?.scheduledFor.getTime() ?? 0;
  const complete = rows.every(
    ({ scheduledFor, outcome }, index) =>
      scheduledFor.getTime() === first + index * 1_000 && outcome === 'succeeded',
  );
  console.log(
    complete
      ? `\n${rows.length} occurrences, ${rows.length} jobs, none missing, none twice.`
      : '\nNot every second has its run: see the table.',
  );
  return complete && rows.length > 0;
}
