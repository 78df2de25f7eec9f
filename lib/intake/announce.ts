import { priorityOf } from '../jobs/priority.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type JobEnqueuedEvent } from '../observability/ratchet-event-map.js';
import { type Inserted, type NewJob } from '../store/job-store.js';

/** Tells of the jobs that one commit brought, and of those that they took the place of. To be called after the commit. Cannot throw. */
export function announce(
  events: EngineEvents | undefined,
  jobs: readonly NewJob[],
  inserted: readonly Inserted[],
  nowMs = Date.now(),
): void {
  if (!events || !(events.heard('enqueued') || events.heard('withdrawn'))) return;
  inserted.forEach((answer, index) => {
    const job = jobs[index];
    if (!job || answer.outcome !== 'created') return;
    if (answer.replaced !== undefined) {
      events.emit('withdrawn', { jobId: answer.replaced, running: false });
    }
    events.emit('enqueued', enqueuedEvent(job, nowMs));
  });
}

function enqueuedEvent(job: NewJob, nowMs: number): JobEnqueuedEvent {
  const { id, name, lane, priority, delayMs, runAt, parent } = job;
  const dueAt = runAt ?? (delayMs > 0 ? new Date(nowMs + delayMs) : undefined);
  return {
    jobId: id,
    name,
    lane,
    priority: priorityOf(priority),
    ...(dueAt ? { dueAt } : {}),
    ...(parent ? { parentId: parent.id } : {}),
  };
}
