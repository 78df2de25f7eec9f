import { showValue } from '../errors/show-value.js';
import { type AnnotatedSchedule } from '../jobs/schedule-spec.js';
import { type ScheduleRow } from '../store/schedule-store.js';

/** Of `ReportJobs.daily`: `daily`. */
const methodOf = (owner: string): string => owner.slice(owner.lastIndexOf('.') + 1);

/** An id that nobody gave is the class and the method. */
const isDefault = ({ id, owner }: { readonly id: string; readonly owner: string | undefined }): boolean =>
  id === owner;

/**
 * A class that was renamed, or minified, changes the ids of its schedules where none are given: the old one looks removed and the
 * new one begins afresh. A line for each pair that looks like that.
 */
export function renamedLines(
  created: readonly AnnotatedSchedule[],
  others: readonly Pick<ScheduleRow, 'id' | 'owner' | 'expression' | 'timeZone'>[],
): string[] {
  return created
    .filter(({ spec }) => isDefault(spec))
    .flatMap(({ spec, method }) => {
      const old = others.find(
        (row) =>
          isDefault(row) &&
          row.expression === spec.expression &&
          row.timeZone === spec.timeZone &&
          methodOf(row.owner ?? '') === method,
      );
      if (!old) return [];
      return [
        `the recurring schedule ${showValue(spec.id)} is new, and ${showValue(old.id)}, which this node does not have, is of a method of the ` +
          'same name at the same times: if a class was renamed (or minified), both run until no node has the old one; give ' +
          `its @Recurring an id (id: ${showValue(old.id)} goes on with the old one)`,
      ];
    });
}
