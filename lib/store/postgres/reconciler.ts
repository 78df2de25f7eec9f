import { type ReconcileAnswer, type ReconcileRequest } from '../job-store.js';
import { type PostgresSession } from './postgres-session.js';
import {
  awaitBuckets,
  decodeStrays,
  selectStrays,
  selectUnsettled,
  unsettledParameters,
} from './statements/reconcile.js';

/** Compares what a node believes of its buckets with what was committed. */
export async function reconcile(
  session: PostgresSession,
  request: ReconcileRequest,
): Promise<ReconcileAnswer> {
  const ids = request.buckets.map(({ id }) => id);
  const rows = await session.service(awaitBuckets, [ids, request.buckets.map(({ epoch }) => epoch)]);
  const ours = new Set(rows.map((row) => row['id'] as string));
  const deposed = ids.filter((id) => !ours.has(id));
  const strays = await session.service(selectStrays, [
    [...ours],
    request.known.map(({ id }) => id),
    request.known.map(({ claimSeq }) => claimSeq),
  ]);
  const parameters = unsettledParameters(request, session.offsetMs, deposed.length === 0);
  const fates = request.unsettled.length === 0 ? [] : await session.service(selectUnsettled, parameters);
  const withFate = (fate: string): string[] =>
    fates.filter((row) => row['fate'] === fate).map((row) => row['id'] as string);
  return { strays: decodeStrays(strays), recorded: withFate('recorded'), lost: withFate('lost'), deposed };
}
