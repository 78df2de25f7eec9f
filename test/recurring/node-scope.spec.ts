import { beforeEach, describe, expect, it } from '@jest/globals';
import { type JobContext } from '../../lib/jobs/job-context.js';
import { makeDefinition } from '../../lib/jobs/define-job.js';
import { annotated, recurringFixture } from './recurring-fixture.js';

describe('a schedule of scope node, in a node', () => {
  const fixture = recurringFixture();
  const cache = annotated(
    { id: 'cache', expression: '@every 1s', scope: 'node' },
    { name: 'refresh', payload: '{"a":1}' },
  );
  beforeEach(() => {
    fixture.runs.length = 0;
  });

  it('runs on each node that has the method, and makes no jobs; what needs a job is refused', async () => {
    const refused: unknown[] = [];
    const seen: unknown[] = [];
    const refresh = fixture.method(async (payload, context: JobContext) => {
      context.progress({ done: 1 });
      seen.push([payload, context.scheduledFor, context.recurrence?.scheduleId]);
      const child = context.enqueue(makeDefinition('child', {}), undefined);
      refused.push(await child.catch((error: unknown) => (error as { code: string }).code));
      try {
        context.snooze('1s');
      } catch (error) {
        refused.push((error as { code: string }).code);
      }
    });
    const nodes = await Promise.all(
      ['one', 'two'].map((nodeId) => fixture.node({ nodeId, handlers: { refresh }, schedules: [cache] })),
    );
    const ended = nodes.map(({ events }) => events.next('node_run'));
    await Promise.all(nodes.map(({ runtime }) => runtime.start()));
    for (const end of ended) expect(await end).toMatchObject({ scheduleId: 'cache', outcome: 'succeeded' });
    expect(refused.slice(0, 2)).toEqual(['NODE_RUN_HAS_NO_JOB', 'NODE_RUN_HAS_NO_JOB']);
    expect(seen[0]).toEqual([{ a: 1 }, fixture.runs[0]!.scheduledFor, 'cache']);
    // It serves no lane for it: no job will ever come.
    expect(nodes[0]!.runtime.snapshot().lanes.map(({ running }) => running)).not.toContain(1);
    expect(await fixture.database.query('select from ratchet.jobs')).toEqual([]);
    expect(await fixture.occurrences('cache')).toEqual([]);
    expect(await fixture.row('cache')).toMatchObject({ nextAt: undefined, served: true });
  });

  it('a drain waits for its run, and aborts it when the time is up', async () => {
    const reasons: unknown[] = [];
    let began = (): void => undefined;
    const running = new Promise<void>((resolve) => (began = resolve));
    const one = await fixture.node({
      settings: { drainTimeoutMs: 300 },
      handlers: {
        refresh: (_payload, { signal }) => {
          began();
          return new Promise((_, reject) =>
            signal.addEventListener('abort', () => {
              reasons.push(signal.reason);
              reject(signal.reason as Error);
            }),
          );
        },
      },
      schedules: [cache],
    });
    await one.runtime.start();
    await running;
    expect(one.runtime.running).toBe(1);
    const waited = one.events.next('drain', ({ step }) => step === 'wait');
    const closing = one.runtime.close();
    expect(await waited).toMatchObject({ running: 1 });
    await closing;
    expect(reasons).toMatchObject([{ code: 'JOB_ABORTED', reason: 'shutdown' }]);
    expect(one.runtime.running).toBe(0);
  });

  it('a drain ends at once when its run has ended', async () => {
    let end = (): void => undefined;
    let began = (): void => undefined;
    const running = new Promise<void>((resolve) => (began = resolve));
    const one = await fixture.node({
      settings: { drainTimeoutMs: 20_000 },
      handlers: {
        refresh: () => {
          began();
          return new Promise<void>((resolve) => (end = resolve));
        },
      },
      schedules: [cache],
    });
    await one.runtime.start();
    await running;
    const timers = one.events.next('drain', ({ step }) => step === 'timers');
    const since = performance.now();
    const closing = one.runtime.close();
    await timers;
    end();
    await closing;
    expect(performance.now() - since).toBeLessThan(10_000);
  });
});
