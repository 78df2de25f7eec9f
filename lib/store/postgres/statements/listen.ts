import { createHash } from 'node:crypto';
import { type MakeStatement } from '../postgres-session.js';

/** PostgreSQL cuts longer names, and refuses to notify them. */
const NAME_BYTES = 63;
const PREFIX = 'ratchet:';
const HASH_LENGTH = 8;

/** `NOTIFY` takes no longer payload. */
export const PAYLOAD_BYTES = 7_999;

/** The channel on which the nodes of a schema tell each other of work. */
export function channelOf(schemaName: string): string {
  const name = PREFIX + schemaName;
  if (Buffer.byteLength(name) <= NAME_BYTES) return name;
  const hash = createHash('sha256').update(schemaName).digest('hex').slice(0, HASH_LENGTH);
  // Cut by bytes, and without the rest of a character that was cut in two.
  const head = Buffer.from(name)
    .subarray(0, NAME_BYTES - HASH_LENGTH - 1)
    .toString();
  return `${head.replace(/\uFFFD$/, '')}#${hash}`;
}

/** Begins to listen. Nothing else is done on that connection, so nothing but silence may end its session. */
export function listenText(channel: string): string {
  return `set idle_session_timeout = 0; listen "${channel.replaceAll('"', '""')}"`;
}

/** `$1` the channel. Whether this very session listens to it. */
export const LISTENING_TEXT =
  'select exists (select from pg_listening_channels() as channel where channel = $1) as listening';

/**
 * `$1` the channel, the node that speaks, the payloads. Costs nothing where there is nobody else: a commit that notifies waits for
 * all others that do.
 */
export const notifyOthers: MakeStatement = (schema) => ({
  name: 'ratchet-notify',
  text: `select pg_notify($1, payload)::text as sent from unnest($3::text[]) as payload
          where exists (select from ${schema}.node where id <> $2)`,
});
