import { ACTS_ON } from '../../../jobs/job-actions.js';
import { LIVE_STATUSES } from '../../../jobs/job-status.js';
import { type ControlAction, type JobQuery } from '../../job-store.js';
import { canceling } from '../statements/cancel.js';
import { storeClock } from '../statements/clock.js';
import { redriving } from '../statements/redrive.js';
import { type ComposedQuery } from './find-jobs.js';
import { ALIASES, conditionOn, type JobPlace, Parameters, placesOf, tableOf } from './job-filter.js';

/** Jobs that one step acts on at most: locked for some ten milliseconds. */
export const CONTROL_CHUNK = 500;
/** Rows that one step looks at at most, so that it stays short when few of them match. */
export const CONTROL_WINDOW = 20_000;

/** A running job is marked at most once, and only what is marked is taken back. */
const IF_RUNNING: Partial<Record<ControlAction['kind'], string>> = {
  pause: 'not j.pause_requested',
  resume: 'j.pause_requested',
};

/** What the action acts on, besides the query: nothing that is so already. */
function actedOn(kind: ControlAction['kind']): string {
  const statuses = LIVE_STATUSES.filter((status) => ACTS_ON[kind].includes(status));
  const isAnyRow = statuses.length === LIVE_STATUSES.length && !IF_RUNNING[kind];
  if (controlPlaceOf({ kind }) === 'dead' || isAnyRow) return 'true';
  const each = statuses.map((status) => {
    const mark = status === 'running' ? IF_RUNNING[kind] : undefined;
    return `j.status = ${LIVE_STATUSES.indexOf(status)}${mark ? ` and ${mark}` : ''}`;
  });
  return `(${each.join(' or ')})`;
}

/** Where a step looks for its jobs. */
export type ControlSource =
  /** In the order of ids, after one. */
  | { readonly after: string }
  /** These, if the query still means them. */
  | { readonly ids: readonly string[] };

export interface ControlStatementRequest {
  readonly action: ControlAction;
  readonly query: JobQuery;
  readonly source: ControlSource;
  /** The database's text of the moment when all of it began; without it that is now. */
  readonly asOf: string | undefined;
  readonly offsetMs: number;
  /** `skip` acts on what nobody holds, `wait` on all, `look` on nothing: it only says what there is. */
  readonly locks: 'skip' | 'wait' | 'look';
}

export const controlPlaceOf = ({ kind }: Pick<ControlAction, 'kind'>): 'live' | 'dead' =>
  kind === 'redrive' ? 'dead' : 'live';

/** Whether there can be any such job. */
export const isControllable = (action: Pick<ControlAction, 'kind'>, query: JobQuery): boolean =>
  placesOf(query).includes(controlPlaceOf(action));

/** How many jobs the query means on which the action acts. */
export function countControllable(
  schema: string,
  kind: ControlAction['kind'],
  query: JobQuery,
): ComposedQuery {
  const parameters = new Parameters();
  const place = controlPlaceOf({ kind });
  return {
    text: `select count(*)::text as count from ${tableOf(schema, place)}
            where ${actedOn(kind)} and ${conditionOn(place, query, parameters)}`,
    parameters: parameters.values,
  };
}

/**
 * One step, one statement: `matched` are the jobs of the chunk, by a plain read; `taken` those of them that it could lock, in the
 * order of ids, and that the query still means under the lock; `changed` those that were changed. Returns a row for each
 * matched job (`changed`, `held`: locked and not changed, `skipped`: not locked) and one, `end`, with the place where the
 * next step goes on, if any, and the moment of the beginning.
 *
 * A window of rows is read by the primary key and filtered above its LIMIT, lazily: whatever matches, a step reads so many
 * rows at most, and all steps together read the table once. Rows are looked up by `any (array[…])`, for which no join but by the index is possible.
 */
export function controlStatement(schema: string, request: ControlStatementRequest): ComposedQuery {
  const { action, query, source, locks } = request;
  const place = controlPlaceOf(action);
  const alias = ALIASES[place];
  const table = tableOf(schema, place);
  const parameters = new Parameters();
  const now = storeClock(parameters.add(request.offsetMs, 'float8'));
  const asOf = request.asOf === undefined ? 'null' : parameters.add(request.asOf, 'timestamptz');
  const born = place === 'live' ? 'j.created_at' : 'd.ended_at';
  const condition = [
    actedOn(action.kind),
    conditionOn(place, query, parameters),
    // Who names the jobs comes to an end by himself.
    ...(query.ids ? [] : [`${born} <= (select as_of from clock)`]),
  ].join(' and ');
  const { matched, last } = matching(place, table, query, source, condition, parameters);
  const taken =
    locks === 'look'
      ? `select ${alias}.* from ${table} where false`
      : `select ${alias}.* from ${table}
   where ${alias}.id = any (array(select id from matched)) and ${condition}
   order by ${alias}.id for update of ${alias}${locks === 'skip' ? ' skip locked' : ''}`;
  return {
    parameters: parameters.values,
    text: `
with clock as materialized (select t.now, coalesce(${asOf}, t.now) as as_of from (select ${now} as now) t),
matched as materialized (${matched}),
taken as materialized (
  ${taken}
),${locks === 'look' ? nothing() : effects(schema, action, parameters)}
select case when c.id is not null then 'changed' when t.id is null then 'skipped' else 'held' end as tag, m.id::text as id,
       c.name, c.lane, c.priority::text as priority, c.claim_seq::text as claim_seq
  from matched m left join changed c on c.id = m.id left join taken t on t.id = m.id
union all
select 'end', (${last})::text, to_char((select as_of from clock) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       null, null, null`,
  };
}

function matching(
  place: JobPlace,
  table: string,
  query: JobQuery,
  source: ControlSource,
  condition: string,
  parameters: Parameters,
): { readonly matched: string; readonly last: string } {
  const id = `${ALIASES[place]}.id`;
  const chunk = String(CONTROL_CHUNK);
  const window = String(CONTROL_WINDOW);
  if ('ids' in source) {
    const ids = parameters.add(source.ids, 'uuid[]');
    return {
      matched: `select ${id} from ${table} where ${id} = any (${ids}) and ${condition} order by ${id}`,
      last: 'null::uuid',
    };
  }
  const after = parameters.add(source.after, 'uuid');
  const full = `(select count(*) from matched) = ${chunk}`;
  const lastMatched = '(select id from matched order by id desc limit 1)';
  // Few rows, which their index finds; in the dead letter a key may have many, and then its index has them in order.
  if (query.businessKeys && (place === 'live' || query.businessKeys.length === 1)) {
    return {
      matched: `select ${id} from ${table} where ${id} > ${after} and ${condition} order by ${id} limit ${chunk}`,
      last: `case when ${full} then ${lastMatched} end`,
    };
  }
  return {
    matched: `
  select w.id from (
    select ${id}, (${condition}) as hit from ${table} where ${id} > ${after} order by ${id} limit ${window}
  ) w where w.hit limit ${chunk}`,
    last: `case when ${full} then ${lastMatched}
            else (select ${id} from ${table} where ${id} > ${after} order by ${id} offset ${window} - 1 limit 1) end`,
  };
}

/** CTEs that end in `changed (id, name, lane, priority, claim_seq)`. */
function effects(schema: string, action: ControlAction, parameters: Parameters): string {
  switch (action.kind) {
    case 'cancel':
      return canceling(schema);
    case 'redrive':
      return redriving(schema);
    case 'pause':
      return changing(
        schema,
        'status = case j.status when 0 then 2 else j.status end, pause_requested = (j.status = 1)',
      );
    case 'resume':
      return changing(
        schema,
        'status = case j.status when 2 then 0 else j.status end, pause_requested = false',
      );
    case 'reschedule': {
      const { runAt, delayMs } = action;
      return changing(
        schema,
        runAt
          ? `scheduled_at = ${parameters.add(runAt.toISOString(), 'timestamptz')}`
          : `scheduled_at = (select now from clock) + ${parameters.add(delayMs, 'float8')} * interval '1 millisecond'`,
      );
    }
  }
}

function changing(schema: string, assignments: string): string {
  return `
changed as (
  update ${schema}.job j set ${assignments}
    from taken t where j.id = any (array[t.id])
  returning j.id, j.name, j.lane, j.priority, case when j.status = 1 then j.claim_seq end as claim_seq
)`;
}

function nothing(): string {
  return `
changed as (
  select t.id, t.name, t.lane, t.priority, t.claim_seq from taken t
)`;
}
