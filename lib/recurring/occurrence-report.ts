import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type PriorityRank } from '../jobs/priority.js';
import { type JobTemplate } from '../jobs/schedule-spec.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type FiredJob, type Firing, type FiringOutcome } from '../store/schedule-store.js';

/**
 * Tells what has become of occurrences, once that is committed: the nodes of jobs that wait for them, and the listeners of this
 * process. Used by everything that fires: the timer, the queue, and a trigger by hand.
 */
export class OccurrenceReport {
  readonly #messages: ClusterMessages;
  readonly #events: EngineEvents;

  constructor({ messages, events }: { messages: ClusterMessages; events: EngineEvents }) {
    this.#messages = messages;
    this.#events = events;
  }

  /** Occurrences have become jobs. */
  fired(jobs: readonly FiredJob[]): void {
    const streams = new Map<string, FiredJob>();
    for (const job of jobs) {
      const { scheduleId, at, jobId, missed } = job;
      this.#events.emit('schedule_fired', { scheduleId, scheduledFor: at, jobId, missed });
      const stream = `${job.priority}${job.lane}`;
      const earliest = streams.get(stream);
      if (!earliest || job.dueInMs < earliest.dueInMs) streams.set(stream, job);
    }
    for (const { lane, priority, dueInMs } of streams.values()) this.#wake(lane, priority, dueInMs);
  }

  /** What came of a firing that was carried out. */
  decided(
    firing: Firing,
    { jobs, skipped, refused = [] }: FiringOutcome & { readonly outcome: 'fired' },
  ): void {
    this.fired(jobs);
    const scheduleId = firing.id;
    const [first] = firing.missed;
    const last = firing.missed.at(-1);
    if (first && last) {
      const count = firing.missed.reduce((sum, range) => sum + range.count, 0);
      this.#events.emit('schedule_missed', { scheduleId, scheduledFor: first.from, through: last.to, count });
    }
    for (const at of refused) {
      this.#events.emit('schedule_skipped', { scheduleId, scheduledFor: at, reason: 'priority_disabled' });
    }
    for (const at of skipped) {
      const run = firing.runs.find((each) => each.at.getTime() === at.getTime());
      const reason = run?.ifBusy === 'wait' ? 'queue_full' : 'overlap';
      this.#events.emit('schedule_skipped', { scheduleId, scheduledFor: at, reason });
    }
  }

  /** The reply was lost: jobs of these templates may be there, and nobody will be told which. */
  unsure(templates: Iterable<Pick<JobTemplate, 'lane' | 'priority'>>): void {
    const streams = new Map([...templates].map((each) => [`${each.priority}${each.lane}`, each]));
    for (const { lane, priority } of streams.values()) this.#wake(lane, priority, 0);
  }

  /** One that is due now was due at its planned time, which claims may have passed. */
  #wake(lane: string, priority: PriorityRank, dueInMs: number): void {
    this.#messages.newWork(lane, priority, dueInMs > 0 ? { dueInMs } : { behind: true });
  }
}
