import 'reflect-metadata';
import { showValue } from '../errors/show-value.js';
import { type RecurringScope } from '../jobs/recurrence.js';
import { type ReadScheduleOptions } from '../recurring/schedule-options.js';
import { type RuleSource } from '../recurring/time/recurrence-rule.js';

/** One `@Recurring`, read and checked. What depends on the module's options is for discovery. */
export interface RecurringDeclaration {
  readonly source: RuleSource;
  /** Undefined: `Class.method`, of the class whose instance has it. */
  readonly id: string | undefined;
  readonly scope: RecurringScope;
  readonly options: ReadScheduleOptions;
  /** Undefined: none was given, and the method takes the context alone. */
  readonly payload: { readonly value: unknown } | undefined;
}

/** What the `@Recurring`s of one method leave behind. It is kept twice, as that of `@Job` is, for the same reason. */
export interface RecurringMark {
  /** `ReportJobs.daily`, as it was decorated. */
  readonly owner: string;
  /** In the order in which they ran: the lowest decorator first. */
  readonly declarations: readonly RecurringDeclaration[];
}

/** `Symbol.for`: the marks are the same for every copy of the package. */
export const RECURRING_MARK = Symbol.for('nestjs-ratchet:recurring');

/** The decorator that left a declaration, as messages show it. */
export function recurringDecoratorOf({ id, source }: Pick<RecurringDeclaration, 'id' | 'source'>): string {
  return `@Recurring(${id === undefined ? showValue(source, 60) : showValue(id, 200)})`;
}
