import { type Clock } from '../cluster/clock.js';
import { type ClaimedJob } from '../store/job-store.js';
import { claimKey } from './outbox.js';

interface BufferedJob {
  readonly job: ClaimedJob;
  readonly sinceMs: number;
}

/**
 * Jobs that a bucket has claimed ahead of its free slots, in claim order. One leaves it for its handler by way of an exchange that
 * makes its start durable (`beginning` meanwhile), or goes back to the database uncharged.
 */
export class ClaimBuffer {
  readonly #clock: Clock;
  #waiting: BufferedJob[] = [];
  #beginning: BufferedJob[] = [];
  /** Of the beginning ones, those that were canceled meanwhile. */
  readonly #canceled = new Set<string>();
  readonly #keys = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Jobs that wait. */
  get size(): number {
    return this.#waiting.length;
  }

  /** Nothing waits or begins. */
  get empty(): boolean {
    return this.#keys.size === 0;
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  add(job: ClaimedJob): void {
    this.#keys.add(claimKey(job.id, job.claimSeq));
    this.#waiting.push({ job, sinceMs: this.#clock.monotonicMs() });
  }

  /** The oldest ones, `count` at most, are to begin with the next exchange: it ends with {@link begun} or {@link putBack}. */
  take(count: number): readonly ClaimedJob[] {
    this.putBack();
    this.#beginning = this.#waiting.splice(0, count);
    return this.#beginning.map(({ job }) => job);
  }

  /** The start of the beginning ones is durable: those that were not canceled, with the time in the buffer in `waitedMs`. */
  begun(): readonly ClaimedJob[] {
    const nowMs = this.#clock.monotonicMs();
    const jobs = this.#beginning.filter(({ job }) => !this.#canceled.has(claimKey(job.id, job.claimSeq)));
    this.#leave(this.#beginning);
    this.#beginning = [];
    this.#canceled.clear();
    return jobs.map(({ job, sinceMs }) => ({ ...job, waitedMs: job.waitedMs + nowMs - sinceMs }));
  }

  /** The exchange failed: they wait again, first of all. */
  putBack(): void {
    const kept = this.#beginning.filter(({ job }) => !this.#canceled.has(claimKey(job.id, job.claimSeq)));
    this.#leave(this.#beginning.filter((buffered) => !kept.includes(buffered)));
    this.#waiting.unshift(...kept);
    this.#beginning = [];
    this.#canceled.clear();
  }

  /** Takes the newest ones out, `count` at most: they are given back. */
  giveUp(count = this.#waiting.length): readonly ClaimedJob[] {
    const given = count === 0 ? [] : this.#waiting.splice(-count);
    this.#leave(given);
    return given.map(({ job }) => job);
  }

  /** A claim that stands no more. Without `claimSeq`: whatever claim of the job is here. True when it was here. */
  cancel(jobId: string, claimSeq: string | undefined): boolean {
    const isIt = ({ job }: BufferedJob): boolean =>
      job.id === jobId && (claimSeq === undefined || job.claimSeq === claimSeq);
    const place = this.#waiting.findIndex(isIt);
    if (place >= 0) this.#leave(this.#waiting.splice(place, 1));
    const beginning = this.#beginning.filter(isIt);
    for (const { job } of beginning) this.#canceled.add(claimKey(job.id, job.claimSeq));
    return place >= 0 || beginning.length > 0;
  }

  /** Nothing of it is ours any more, what begins at this moment aside. */
  clear(): void {
    this.#leave(this.#waiting.splice(0));
  }

  known(): readonly { id: string; claimSeq: string }[] {
    return [...this.#waiting, ...this.#beginning].map(({ job: { id, claimSeq } }) => ({ id, claimSeq }));
  }

  #leave(jobs: readonly BufferedJob[]): void {
    for (const { job } of jobs) this.#keys.delete(claimKey(job.id, job.claimSeq));
  }
}
