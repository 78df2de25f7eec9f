import { Logger } from '@nestjs/common';
import { counted } from '../../errors/counted.js';
import { showValue } from '../../errors/show-value.js';

/** Beyond it their number says more. */
const MOST_IDS = 10;

/**
 * A line for each change that code makes to schedules: what an operator looks for when one is gone, or stands still. It must never
 * throw, since the change is made by then.
 */
export class ScheduleLog {
  readonly #logger = new Logger('RatchetRecurring');

  changed(id: string, what: string): void {
    this.#say('log', `the recurring schedule ${showValue(id, 200)} was ${what}`);
  }

  /** Beside the plan: as many as somebody asks for. */
  triggered(id: string, outcome: string): void {
    this.#say('debug', `the recurring schedule ${showValue(id, 200)} was triggered: ${outcome}`);
  }

  deleted(ids: readonly string[], canceledJobs: number): void {
    if (ids.length === 0) return;
    const shown = ids.slice(0, MOST_IDS).map((id) => showValue(id, 200));
    const those = ids.length === 1 ? 'the recurring schedule' : `${ids.length} recurring schedules:`;
    this.#say(
      'log',
      `${those} ${shown.join(', ')}${ids.length > MOST_IDS ? ', …' : ''} ${ids.length === 1 ? 'was' : 'were'} deleted, ` +
        `with ${counted(canceledJobs, 'job')} canceled`,
    );
  }

  #say(level: 'log' | 'debug', message: string): void {
    try {
      this.#logger[level](message);
    } catch {
      // There is nobody left to tell.
    }
  }
}
