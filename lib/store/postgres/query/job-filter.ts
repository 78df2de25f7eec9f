import { type JobQuery, type TimeRange } from '../../job-store.js';
import { isUuid } from '../../../jobs/job-id.js';
import { LIVE_STATUSES, type LiveJobStatus } from '../../../jobs/job-status.js';

/** Where a job can be: each is a table with indexes of its own, so each is asked for itself. */
export type JobPlace = 'live' | 'history' | 'dead';

/** The short names of the tables in the texts of `query/`. */
export const ALIASES: Readonly<Record<JobPlace, string>> = { live: 'j', history: 'h', dead: 'd' };

const TABLES: Readonly<Record<JobPlace, string>> = {
  live: 'job',
  history: 'job_history',
  dead: 'dead_letter',
};

/** `schema.table alias`. */
export const tableOf = (schema: string, place: JobPlace): string =>
  `${schema}.${TABLES[place]} ${ALIASES[place]}`;

const IN_HISTORY = ['succeeded', 'canceled'] as const;

/** Nothing ends before it is made; a day for clocks that were set back. */
const MARGIN = `interval '1 day'`;

/** The parameters of a text that is put together; the same value is sent once. */
export class Parameters {
  readonly values: unknown[] = [];
  readonly #known = new Map<unknown, string>();

  /** The placeholder for a value, with its cast. */
  add(value: string | number | readonly unknown[], type: string): string {
    const key = typeof value === 'object' ? value : `${type} ${String(value)}`;
    const known = this.#known.get(key) ?? `$${String(this.values.push(value))}::${type}`;
    this.#known.set(key, known);
    return known;
  }
}

/** The tables in which the query can find something at all. */
export function placesOf({ statuses, ended }: JobQuery): JobPlace[] {
  const asked = (some: readonly string[]): boolean =>
    statuses === undefined || statuses.some((status) => some.includes(status));
  const places: JobPlace[] = [];
  if (!bounded(ended) && asked(LIVE_STATUSES)) places.push('live');
  if (asked(IN_HISTORY)) places.push('history');
  if (asked(['failed'])) places.push('dead');
  return places;
}

/**
 * The query as conditions on one table, joined by `and`. Only what is asked for becomes text, so that the planner sees which
 * index serves: ids and business keys have one, ended_at prunes the partitions of history.
 */
export function conditionOn(place: JobPlace, query: JobQuery, parameters: Parameters): string {
  const column = (name: string): string => `${ALIASES[place]}.${name}`;
  const conditions: string[] = [];
  const anyOf = (name: string, values: readonly (string | number)[] | undefined, type: string): void => {
    const [only] = values ?? [];
    if (values?.length === 1 && only !== undefined) {
      // Of one value an index has the ids in order.
      conditions.push(`${column(name)} = ${parameters.add(only, type)}`);
    } else if (values) conditions.push(`${column(name)} = any (${parameters.add(values, `${type}[]`)})`);
  };
  const within = (name: string, range: TimeRange | undefined): void => {
    if (range?.from) conditions.push(`${column(name)} >= ${time(range.from, parameters)}`);
    if (range?.until) conditions.push(`${column(name)} < ${time(range.until, parameters)}`);
  };
  anyOf('id', query.ids?.filter(isUuid), 'uuid');
  statusCondition(place, query, parameters, conditions);
  anyOf('name', query.names, 'text');
  anyOf('lane', query.lanes, 'text');
  anyOf('priority', query.priorities, 'smallint');
  if (query.tags && query.tags.length > 0) {
    conditions.push(`${column('tags')} @> ${parameters.add(query.tags, 'text[]')}`);
  }
  if (query.businessKeys) conditions.push(`${column('business_key')} is not null`);
  anyOf('business_key', query.businessKeys, 'text');
  if (query.parentId !== undefined) {
    conditions.push(
      isUuid(query.parentId) ? `${column('parent_id')} = ${parameters.add(query.parentId, 'uuid')}` : 'false',
    );
  }
  within('created_at', query.created);
  within('scheduled_at', query.scheduled);
  if (place !== 'live') within('ended_at', query.ended);
  if (place === 'history' && query.created?.from) {
    conditions.push(`h.ended_at >= ${time(query.created.from, parameters)} - ${MARGIN}`);
  }
  return conditions.length === 0 ? 'true' : conditions.join(' and ');
}

function statusCondition(
  place: JobPlace,
  { statuses }: JobQuery,
  parameters: Parameters,
  conditions: string[],
): void {
  if (!statuses || place === 'dead') return;
  if (place === 'history') {
    const outcomes = IN_HISTORY.filter((status) => statuses.includes(status));
    if (outcomes.length < IN_HISTORY.length) {
      conditions.push(`h.outcome = any (${parameters.add(outcomes, 'text[]')})`);
    }
    return;
  }
  const live = statuses.filter((status): status is LiveJobStatus =>
    (LIVE_STATUSES as readonly string[]).includes(status),
  );
  if (new Set(live).size < LIVE_STATUSES.length) {
    const numbers = live.map((status) => LIVE_STATUSES.indexOf(status));
    conditions.push(`j.status = any (${parameters.add(numbers, 'smallint[]')})`);
  }
}

const time = (date: Date, parameters: Parameters): string =>
  parameters.add(date.toISOString(), 'timestamptz');

const bounded = (range: TimeRange | undefined): boolean =>
  range?.from !== undefined || range?.until !== undefined;
