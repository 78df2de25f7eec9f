import { type ClaimedJob } from '../store/job-store.js';
import { claimKey } from './outbox.js';

interface Mark {
  readonly no: number;
  /** Of its jobs, those that may not be answered for yet. */
  readonly keys: string[];
}

/**
 * The start marks of a bucket that the database has: each names a batch of jobs that were claimed ahead and have begun, and is
 * forgotten with an exchange once the last of them is answered for. Numbers are used once.
 */
export class StartMarks {
  #last = 0;
  #marks: Mark[] = [];
  #forget: number[] = [];

  /** The number for the next exchange that begins something. */
  next(): number {
    this.#last += 1;
    return this.#last;
  }

  /** The exchange that wrote it was answered. */
  written(no: number, jobs: readonly ClaimedJob[]): void {
    this.#marks.push({ no, keys: jobs.map(({ id, claimSeq }) => claimKey(id, claimSeq)) });
  }

  /** The exchange that was to write it failed: it may be there, and names jobs that have not begun. */
  unsure(no: number): void {
    if (this.#marks.some((mark) => mark.no === no)) return;
    this.#forget.push(no);
  }

  /** What the next exchange takes along. `isHeld`: the job of a key is running, or waits to be recorded. */
  takeForgotten(isHeld: (key: string) => boolean): readonly number[] {
    this.#marks = this.#marks.filter(({ no, keys }) => {
      // A key that was let go is never held again, so that each is looked at until then and once more.
      while (keys.length > 0 && !isHeld(keys[keys.length - 1] as string)) keys.pop();
      if (keys.length === 0) this.#forget.push(no);
      return keys.length > 0;
    });
    return this.#forget.splice(0);
  }

  /** That exchange failed: they travel again. */
  putBack(forgotten: readonly number[]): void {
    this.#forget.push(...forgotten);
  }
}
