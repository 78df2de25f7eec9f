import { type Firing, type FiringOutcome } from '../../schedule-store.js';
import { faultKindOf } from '../../store-fault.js';
import { type PostgresSession } from '../postgres-session.js';
import { retriedRollback } from '../retried-rollback.js';
import { decodeFired, fire, fireParameters } from '../statements/schedules/fire.js';

/** Occurrences that one statement writes at most, unless a single firing has more. */
const MOST_OCCURRENCES = 2_000;

/**
 * Fires schedules, as many as possible in one statement. A statement that fails for a row is split until that row stands alone, so
 * that one bad schedule costs the others some milliseconds and nothing else.
 *
 * When the database goes away after a part was committed, the rest has failed with that: what was committed is not hidden behind an
 * error.
 */
export class ScheduleFiring {
  constructor(private readonly session: PostgresSession) {}

  async fire(firings: readonly Firing[]): Promise<readonly FiringOutcome[]> {
    const outcomes = new Map<Firing, FiringOutcome>();
    const first = new Map(firings.map((firing) => [firing.id, firing] as const).reverse());
    for (const part of parts([...first.values()].reverse())) await this.#firePart(part, outcomes);
    return firings.map((firing) => outcomes.get(firing) ?? { id: firing.id, outcome: 'superseded' });
  }

  async #firePart(part: readonly Firing[], outcomes: Map<Firing, FiringOutcome>): Promise<void> {
    try {
      const fired = await this.#send(part);
      part.forEach((firing, index) => outcomes.set(firing, fired[index] as FiringOutcome));
    } catch (error) {
      if (faultKindOf(error) !== 'bad_row') {
        if (![...outcomes.values()].some(({ outcome }) => outcome === 'fired')) throw error;
        for (const firing of part) outcomes.set(firing, { id: firing.id, outcome: 'failed', error });
        return;
      }
      const [alone, ...others] = part;
      if (alone && others.length === 0) {
        outcomes.set(alone, { id: alone.id, outcome: 'failed', error });
        return;
      }
      const half = Math.ceil(part.length / 2);
      await this.#firePart(part.slice(0, half), outcomes);
      await this.#firePart(part.slice(half), outcomes);
    }
  }

  async #send(part: readonly Firing[]): Promise<FiringOutcome[]> {
    const { session } = this;
    const rows = await retriedRollback(() => session.service(fire, fireParameters(part, session.offsetMs)));
    return decodeFired(part, rows);
  }
}

function parts(firings: readonly Firing[]): Firing[][] {
  const all: Firing[][] = [];
  let current: Firing[] = [];
  let occurrences = 0;
  for (const firing of firings) {
    const more = firing.runs.length + firing.missed.length;
    if (current.length > 0 && occurrences + more > MOST_OCCURRENCES) {
      all.push(current);
      current = [];
      occurrences = 0;
    }
    current.push(firing);
    occurrences += more;
  }
  return current.length > 0 ? [...all, current] : all;
}
