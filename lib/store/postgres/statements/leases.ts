import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/** What ends an insert into the table of leases, `l`: an expired lease is taken over, our own is prolonged. */
export const prolongsIfFreeOrOwn = (now: string): string => `
on conflict (name) do update set node_id = excluded.node_id, node_epoch = excluded.node_epoch, expires_at = excluded.expires_at
      where l.expires_at <= ${now} or (l.node_id = excluded.node_id and l.node_epoch = excluded.node_epoch)`;

/** `$1` offset, name, ttl in ms, node id, epoch. Takes a free or expired lease, or prolongs our own. */
export const takeLease: MakeStatement = (schema) => ({
  text: `
insert into ${schema}.lease as l (name, node_id, node_epoch, expires_at)
values ($2, $4, $5::bigint, ${storeClock('$1')} + $3::float8 * interval '1 millisecond')
${prolongsIfFreeOrOwn(storeClock('$1'))}
returning name`,
});

export const renewLease: MakeStatement = (schema) => ({
  text: `
update ${schema}.lease set expires_at = ${storeClock('$1')} + $3::float8 * interval '1 millisecond'
 where name = $2 and node_id = $4 and node_epoch = $5::bigint and expires_at > ${storeClock('$1')}
returning name`,
});

/** Name, node id, epoch. */
export const releaseLease: MakeStatement = (schema) => ({
  text: `delete from ${schema}.lease where name = $1 and node_id = $2 and node_epoch = $3::bigint`,
});
