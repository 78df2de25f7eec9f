import { JobContext } from './job-context.js';
import { type Recurrence } from './recurrence.js';

/**
 * What a `@Recurring` method knows of its execution. An abstract class, not an interface: an interface in a decorated signature
 * fails to load under swc with ESM.
 *
 * @typeParam P - the `payload` of the decorator; `undefined` without one.
 */
export abstract class RecurringContext<out P = unknown> extends JobContext<P> implements Recurrence {
  abstract readonly scheduleId: string;
  abstract readonly previous: Date | undefined;
  abstract readonly missed: number;
}
