import { uuidv7 } from 'uuidv7';
import { type DueSchedule, type Firing } from '../store/schedule-store.js';
import { type DueTimes, occurrencesToKeep, planFiring } from './occurrence-planner.js';
import { type RuleCache } from './rule-cache.js';
import { occurrencesUntil } from './time/missed.js';

/** Makes the firing of a due schedule, in two steps, since the first may take long: counts what its rule has had, and plans it. */
export class FiringPlanner {
  /** @param upMs - for how long this node has been there to see what is due. */
  constructor(
    private readonly rules: RuleCache,
    private readonly upMs: () => number,
  ) {}

  /**
   * What is due until now.
   *
   * @param counted - an earlier answer for the same revision and time: only what came since then is counted.
   * @throws what is wrong with the rule, and the reason of `signal`.
   */
  async count(
    schedule: DueSchedule,
    now: Date,
    signal: AbortSignal,
    counted: DueTimes = this.#nothing(schedule),
  ): Promise<DueTimes> {
    const { first, count, newest, next } = counted;
    if (!next) return counted;
    const keep = occurrencesToKeep(schedule.misfire);
    const since = await occurrencesUntil(this.rules.of(schedule), next, now, schedule.anchor, keep, signal);
    return {
      first,
      count: count + since.count,
      newest: [...newest, ...since.newest].slice(-keep),
      next: since.next,
    };
  }

  /** @param times - counted until this `now`. */
  plan(schedule: DueSchedule, times: DueTimes, now: Date): Firing {
    return planFiring(schedule, times, now, uuidv7, this.upMs());
  }

  #nothing(schedule: DueSchedule): DueTimes {
    // The stored time need not be one of the rule's any more: the zone may have other rules by now.
    const first = this.rules.of(schedule).next(new Date(schedule.nextAt.getTime() - 1), schedule.anchor);
    return { first, count: 0, newest: [], next: first };
  }
}
