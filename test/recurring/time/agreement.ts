import { type RecurrenceRule } from '../../../lib/recurring/time/recurrence-rule.js';
import { type SlowOracle } from './slow-oracle.js';

const EPOCH = new Date(0);

/** Where `next` and the oracle differ in the oracle's window, or undefined: they name the same instants. */
export function disagreement(
  oracle: SlowOracle,
  expression: string,
  rule: Pick<RecurrenceRule, 'next'>,
): string | undefined {
  const expected = oracle.occurrences(expression);
  let after = new Date(oracle.from);
  for (let index = 0; index <= expected.length; index += 1) {
    const next = rule.next(after, EPOCH);
    const due = expected[index];
    const inWindow = next && next.getTime() <= oracle.until ? next.getTime() : undefined;
    if (inWindow !== due) {
      return `"${expression}" in ${oracle.zone} after ${after.toISOString()}: ${show(inWindow)}, the oracle says ${show(due)}`;
    }
    if (next) after = next;
  }
  return undefined;
}

function show(instant: number | undefined): string {
  return instant === undefined ? 'none' : new Date(instant).toISOString();
}
