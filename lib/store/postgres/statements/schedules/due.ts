import {
  type BrokenSchedule,
  type DueAnswer,
  type DueRequest,
  type DueSchedule,
  RECURRING_LEASE as LEASE,
} from '../../../schedule-store.js';
import { describeError } from '../../../../errors/describe-error.js';
import { type Row } from '../../../sql-client.js';
import { type MakeStatement } from '../../postgres-session.js';
import { storeClock } from '../clock.js';
import { prolongsIfFreeOrOwn } from '../leases.js';
import { nextDueInMs, promotableSchedules } from './next-due.js';
import { epochMs, readSchedule, SCHEDULE_COLUMNS } from './schedule-json.js';

/** An answer ends with the schedule whose payload takes it beyond this: by stored bytes, a compressed one counted so many times. */
const MOST_PAYLOAD_BYTES = 8_000_000;
const COMPRESSED_COUNTS = 20;

/**
 * `$1` offset, node id, epoch, lease in ms, limit. Walks the index of due schedules from its head: to the first only when nothing is
 * due, and then the lease is not touched.
 */
export const due: MakeStatement = (schema) => ({
  name: 'ratchet-schedules-due',
  text: `
with clock as materialized (select date_trunc('milliseconds', ${storeClock('$1')}) as now),
head as materialized (
  select s.next_at <= c.now as is_due from clock c
   cross join lateral (select next_at from ${schema}.schedule where next_at is not null order by next_at, id limit 1) s
),
taken as (
  insert into ${schema}.lease as l (name, node_id, node_epoch, expires_at)
  select '${LEASE}', $2::text, $3::bigint, ${storeClock('$1')} + $4::float8 * interval '1 millisecond' from head where is_due
  ${prolongsIfFreeOrOwn(storeClock('$1'))}
  returning name
),
found as materialized (
  select s.*, sum(s.weight) over (rows unbounded preceding) - s.weight as before, row_number() over () as place
    from taken cross join clock c cross join lateral (
      select s.id as key, pg_column_size(s.payload) * case when pg_column_compression(s.payload) is null then 1
                                                           else ${String(COMPRESSED_COUNTS)} end as weight
        from ${schema}.schedule s
       where s.next_at is not null and s.next_at <= c.now
       order by s.next_at, s.id limit $5::int + 1
    ) s
),
chosen as materialized (
  select f.key, f.place from found f where f.place <= $5::int and coalesce(f.before, 0) < ${String(MOST_PAYLOAD_BYTES)}
)
select 'due' as tag, h.key as id, s.revision::text as revision, to_json(s)::text as row
  from chosen h cross join lateral (
    select ${SCHEDULE_COLUMNS} from ${schema}.schedule s where s.id = h.key limit 1
  ) s
union all
select 'end', null, null, json_build_object(
         'now', ${epochMs('c.now')},
         'heldForMs', case when h.is_due and not exists (select from taken) then
           coalesce((select greatest(0, ceil(extract(epoch from l.expires_at - c.now) * 1000))
                       from ${schema}.lease l where l.name = '${LEASE}'), $4::float8) end,
         'more', (select count(*) from found) > (select count(*) from chosen),
         'promotable', exists (${promotableSchedules(schema)}),
         'nextInMs', ${nextDueInMs(schema, 'c.now', 's.next_at > c.now')})::text
  from clock c left join head h on true`,
});

export function dueParameters({ node, leaseMs, limit }: DueRequest, offsetMs: number): unknown[] {
  return [offsetMs, node.id, node.epoch, leaseMs, limit];
}

interface End {
  readonly now: number;
  readonly heldForMs: number | null;
  readonly more: boolean;
  readonly promotable: boolean;
  readonly nextInMs: number | null;
}

export function decodeDue(rows: readonly Row[]): DueAnswer {
  const due: DueSchedule[] = [];
  const broken: BrokenSchedule[] = [];
  for (const row of rows) {
    if (row['tag'] !== 'due') continue;
    const read = decodeDueSchedule(row);
    if ('template' in read) due.push(read);
    else broken.push(read);
  }
  const end = JSON.parse(rows.find((row) => row['tag'] === 'end')?.['row'] as string) as End;
  return {
    now: new Date(end.now),
    heldForMs: end.heldForMs ?? undefined,
    due: due.sort((a, b) => a.nextAt.getTime() - b.nextAt.getTime()),
    broken,
    more: end.more,
    promotable: end.promotable,
    nextInMs: end.nextInMs ?? undefined,
  };
}

/** One that cannot be read must not hold up the others. */
function decodeDueSchedule(row: Row): DueSchedule | BrokenSchedule {
  const id = row['id'] as string;
  const revision = row['revision'] as string;
  try {
    const { schedule, unreadable } = readSchedule(row['row'] as string);
    const { nextAt } = schedule;
    if (unreadable === undefined && nextAt) return { ...schedule, nextAt };
    return { id, revision, fault: unreadable ?? 'it has no next time' };
  } catch (error) {
    return { id, revision, fault: describeError(error).message };
  }
}
