import { type UnservedLane } from '../store/job-store.js';

/** From so many on the store has stopped counting. */
const COUNTED = 1_000;

/**
 * Says that due jobs wait in a lane that no running node serves: a misspelt lane, or nodes that are missing. A lane is told
 * when two looks in a row have found it, so that a cluster that starts or rolls is no news, and told again when other names
 * turn up in it.
 */
export class UnservedLanesReport {
  #seen = new Set<string>();
  readonly #told = new Map<string, string>();

  constructor(private readonly logger: { warn(message: string): void }) {}

  tell(found: readonly UnservedLane[]): void {
    const before = this.#seen;
    this.#seen = new Set(found.map(({ lane }) => lane));
    for (const lane of this.#told.keys()) if (!this.#seen.has(lane)) this.#told.delete(lane);
    for (const { lane, due, oldestMs, names } of found) {
      const list = [...names].sort().join(', ');
      if (!before.has(lane) || this.#told.get(lane) === list) continue;
      this.#told.set(lane, list);
      this.logger.warn(
        `lane "${lane}": ${due}${due >= COUNTED ? ' or more' : ''} due jobs that no running node serves, the oldest for ` +
          `${Math.round(oldestMs / 1_000)} s: ${list}; let a node serve the lane (option "lanes", or a handler whose ` +
          'definition names it), correct the lane where they are enqueued, or cancel them',
      );
    }
  }
}
