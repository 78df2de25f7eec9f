import { type JobQuery, type PageRequest } from '../../job-store.js';
import { storedWeight } from '../statements/stored-weight.js';
import { ALIASES, conditionOn, type JobPlace, Parameters, placesOf, tableOf } from './job-filter.js';

/** A text that was put together, and what goes with it. */
export interface ComposedQuery {
  readonly text: string;
  readonly parameters: readonly unknown[];
}

/** What all three tables have, by the same name. */
const SHARED = [
  'id',
  'name',
  'version',
  'lane',
  'priority',
  'payload',
  'progress',
  'scheduled_at',
  'created_at',
  'begun_at',
  'executions',
  'failures',
  'crashes',
  'claim_seq',
  'max_retries',
  'business_key',
  'tags',
  'metadata',
  'parent_id',
];

/** What they have under names, or from sources, of their own. */
const OTHERS = ['status', 'result', 'error', 'ended_at', 'node', 'pause_requested', 'bucket'];
const OTHERS_OF: Readonly<Record<JobPlace, string>> = {
  live: `(array['pending', 'running', 'paused'])[j.status + 1], null::jsonb, j.last_error, null::timestamptz, null::text,
          j.pause_requested, j.bucket`,
  history: `h.outcome, h.result, h.error, h.ended_at, h.node, false, null::uuid`,
  dead: `'failed', null::jsonb, d.error, d.ended_at, d.node, false, null::uuid`,
};

/** What one page carries of large values, about, as stored; one job's always fit. */
const MOST_BYTES = 8_000_000;
const LARGE = ['payload', 'result', 'error', 'progress', 'metadata', 'tags'];

const PAGE_COLUMNS = SHARED.filter((column) => column !== 'payload' && column !== 'claim_seq')
  .map((column) => `g.${column}`)
  .join(', ');

/**
 * A page by id, newest first; `undefined` when nothing can match. Each table gives a page of its own, which its index on the id
 * serves in order (the partitions of history are merged), and the three are merged. Payloads and nodes are looked up for the
 * rows of the page alone. Not by the view: under it the planner joins every payload first.
 *
 * One row more than the page has is looked for, and counted in `found`. Large values come along as pointers to where they lie;
 * the page ends where they would be more than an answer should have, and only those that are in it are fetched.
 */
export function findJobs(schema: string, query: JobQuery, page: PageRequest): ComposedQuery | undefined {
  const places = placesOf(query);
  if (places.length === 0) return undefined;
  const parameters = new Parameters();
  const limit = parameters.add(page.limit + 1, 'bigint');
  const before = page.before === undefined ? undefined : parameters.add(page.before, 'uuid');
  const branches = places.map((place) => {
    const alias = ALIASES[place];
    return `(select ${SHARED.map((column) => `${alias}.${column}`).join(', ')}, ${OTHERS_OF[place]}
     from ${tableOf(schema, place)}
    where ${conditionOn(place, query, parameters)}${before ? ` and ${alias}.id < ${before}` : ''}
    order by ${alias}.id desc limit ${limit})`;
  });
  const most = parameters.add(page.limit, 'bigint');
  return {
    parameters: parameters.values,
    text: `
with page as materialized (
  select * from (
    ${branches.join('\n    union all\n    ')}
  ) u (${[...SHARED, ...OTHERS].join(', ')})
  order by id desc limit ${limit}
),
whole as materialized (
  select ${PAGE_COLUMNS}, g.status, g.result, g.error, g.ended_at, g.pause_requested, g.claim_seq::text as claim_seq,
         coalesce(g.payload, (select p.payload from ${schema}.job_payload p where p.job_id = g.id)) as payload,
         coalesce(g.node, (select b.node_id from ${schema}.bucket b where b.id = g.bucket)) as node
    from page g
),
weighed as materialized (
  select w.*, row_number() over newest as place, count(*) over () as found,
         sum(${LARGE.map((column) => storedWeight(`w.${column}`)).join(' + ')}) over newest as bytes
    from whole w window newest as (order by w.id desc rows unbounded preceding)
)
select to_json(v)::text as row, v.found::text as found
  from weighed v
 where v.place <= ${most} and (v.bytes <= ${MOST_BYTES} or v.place = 1)
 order by v.id desc`,
  };
}

/** How many jobs the query means. Reads no payload. */
export function countJobs(schema: string, query: JobQuery): ComposedQuery | undefined {
  const places = placesOf(query);
  if (places.length === 0) return undefined;
  const parameters = new Parameters();
  const counts = places.map(
    (place) =>
      `(select count(*) from ${tableOf(schema, place)} where ${conditionOn(place, query, parameters)})`,
  );
  return { text: `select (${counts.join(' + ')})::text as count`, parameters: parameters.values };
}
