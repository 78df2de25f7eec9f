/** So many times in a row a job is given back for what is not its handler's doing; the next time it counts. */
export const UNCHARGED_TRIES = 3;
/** More are not kept in mind. Jobs that other nodes go on with are never told to have ended. */
const MOST_JOBS = 1_000;

/**
 * Which jobs were given back uncharged, and how often in a row. Counted by each node for itself: it keeps a storm of conflicts
 * from going round for ever, and need not be exact.
 */
export class Grace {
  readonly #tries = new Map<string, number>();

  /** False: there were enough. */
  take(jobId: string): boolean {
    const tries = (this.#tries.get(jobId) ?? 0) + 1;
    this.#tries.delete(jobId);
    if (tries > UNCHARGED_TRIES) return false;
    this.#tries.set(jobId, tries);
    const [oldest] = this.#tries.keys();
    if (this.#tries.size > MOST_JOBS && oldest !== undefined) this.#tries.delete(oldest);
    return true;
  }

  /** Its outcome is recorded, or counts. */
  forget(jobId: string): void {
    this.#tries.delete(jobId);
  }
}
