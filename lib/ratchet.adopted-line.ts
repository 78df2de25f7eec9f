import { counted } from './errors/counted.js';
import { showValue } from './errors/show-value.js';
import { type AnnotatedSchedule } from './jobs/schedule-spec.js';

/** Beyond it their number says more. */
const MOST = 20;

/**
 * The line at boot that says which `@Cron` methods `adoptCron` found, and in which zone each is read.
 *
 * @param worker - the module option: only with `true` this process runs them.
 */
export function adoptedLine(schedules: readonly AnnotatedSchedule[], worker: boolean | 'drain'): string {
  const adopted = schedules.filter((schedule) => schedule.adopted);
  if (adopted.length === 0) return 'adoptCron: no method of this app has a @Cron';
  const shown = adopted.slice(0, MOST).map(({ spec, adopted: how }) => {
    const { id, owner, expression, timeZone, enabled } = spec;
    const method = owner === undefined || owner === id ? '' : `${owner}, `;
    const zone = `${timeZone}${how?.zoneOfProcess ? ", this process's own zone" : ''}`;
    return `${showValue(id, 200)} (${method}${showValue(expression)}, ${zone}${enabled ? '' : ', disabled'})`;
  });
  const more = adopted.length > MOST ? `, and ${adopted.length - MOST} more` : '';
  const run =
    worker === true
      ? `${counted(adopted.length, '@Cron method runs', '@Cron methods run')} once for all nodes`
      : `this process runs none (worker: ${worker === false ? 'false' : "'drain'"}); workers run ${counted(adopted.length, '@Cron method')} once for all nodes`;
  return `adoptCron: ${run}: ${shown.join(', ')}${more}`;
}
