import { type ScheduleMark } from '../../../schedule-store.js';
import { type MakeStatement } from '../../postgres-session.js';
import { storeClock } from '../clock.js';
import { nextRevision } from './write.js';

/**
 * `$1` offset, id, revision, `$4` kind of the mark, `$5` fault, `$6` next time. Nothing but a resume leaves it due. A resumed one counts
 * as mended.
 */
export const markSchedule: MakeStatement = (schema) => ({
  text: `
update ${schema}.schedule s
   set revision = ${nextRevision(schema)}, updated_at = date_trunc('milliseconds', ${storeClock('$1')}),
       paused = case $4::text when 'paused' then true when 'resumed' then false else s.paused end,
       fault = case $4::text when 'broken' then $5::text when 'resumed' then null else s.fault end,
       next_at = case $4::text when 'resumed' then $6::timestamptz end
 where s.id = $2::text and s.revision = $3::bigint and s.removed_at is null
returning s.id`,
});

export function markParameters(
  id: string,
  revision: string,
  mark: ScheduleMark,
  offsetMs: number,
): unknown[] {
  const fault = mark.kind === 'broken' ? mark.fault : null;
  const nextAt = mark.kind === 'resumed' ? (mark.nextAt?.toISOString() ?? null) : null;
  return [offsetMs, id, revision, mark.kind, fault, nextAt];
}
