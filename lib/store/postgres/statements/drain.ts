import { statusesBefore } from '../../bucket-transitions.js';
import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

const DRAINABLE = statusesBefore('completing', 'operator')
  .map((status) => `'${status}'`)
  .join(', ');

/**
 * Moves the buckets that a condition on `b` means, in the order of ids, so that two such statements cannot wait for each other. The
 * update waits for the exchange in flight, which holds the row. Epochs stay: the owner goes on, and finishes.
 */
const draining = (schema: string, condition: string): string => `
found as materialized (
  select b.id from ${schema}.bucket b where ${condition} and b.status in (${DRAINABLE}) order by b.id for update
),
moved as (
  update ${schema}.bucket b set status = 'completing', status_at = ${storeClock('$1')}
    from found f where b.id = any (array[f.id]) and b.status in (${DRAINABLE})
  returning b.id, b.lane, b.node_id, b.node_epoch
)`;

const shown = `json_build_object('id', m.id, 'lane', m.lane, 'node', json_build_object('id', m.node_id, 'epoch', m.node_epoch::text))::text`;

/** `$1` offset, `$2` id. One row if the bucket is there; with `row` if it was moved. */
export const drainBucket: MakeStatement = (schema) => ({
  text: `
with ${draining(schema, 'b.id = $2::uuid')}
select case when m.id is not null then ${shown} end as row
  from ${schema}.bucket b left join moved m on m.id = b.id where b.id = $2::uuid`,
});

/** `$1` offset, `$2` lane. */
export const drainBucketsOfLane: MakeStatement = (schema) => ({
  text: `with ${draining(schema, 'b.lane = $2::text')} select ${shown} as row from moved m order by m.id`,
});

/** `$1` offset, `$2` node id, `$3` epoch. */
export const drainBucketsOfNode: MakeStatement = (schema) => ({
  text: `
with ${draining(schema, 'b.node_id = $2::text and b.node_epoch = $3::bigint')} select ${shown} as row from moved m order by m.id`,
});

const node = `json_build_object('node', json_build_object('id', o.id, 'epoch', o.epoch::text), 'lanes', o.lanes,
         'changed', o.changed)::text as row`;

/**
 * `$1` offset, `$2` id: the node opens no bucket once this is committed. Who opens one share-locks the node's row, so that this waits for
 * it, and a look for the node's buckets afterwards finds what it has opened.
 */
export const cordonNode: MakeStatement = (schema) => ({
  text: `
with old as materialized (
  select n.id, n.epoch, n.lanes, n.cordoned_at is null as changed from ${schema}.node n where n.id = $2::text for update
),
cordoned as (update ${schema}.node n set cordoned_at = ${storeClock('$1')} from old o where n.id = o.id and o.changed)
select ${node} from old o`,
});

/** `$1` id. */
export const uncordonNode: MakeStatement = (schema) => ({
  text: `
with old as materialized (
  select n.id, n.epoch, n.lanes, n.cordoned_at is not null as changed from ${schema}.node n where n.id = $1::text for update
),
uncordoned as (update ${schema}.node n set cordoned_at = null from old o where n.id = o.id and o.changed)
select ${node} from old o`,
});
