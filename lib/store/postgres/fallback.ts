import { uuidv7 } from 'uuidv7';
import {
  type BucketRef,
  type FallbackNeed,
  type FallbackNeedRequest,
  type FallbackRequest,
  type StarvingAnswer,
  type StarvingRequest,
} from '../job-store.js';
import { type PostgresSession } from './postgres-session.js';
import * as statements from './statements/fallback.js';

/** See {@link JobStore.starving}. */
export async function starving(session: PostgresSession, request: StarvingRequest): Promise<StarvingAnswer> {
  const parameters = statements.starvingParameters(request, session.offsetMs);
  return statements.decodeStarving(await session.service(statements.starvingStreams, parameters));
}

/** See {@link JobStore.openFallback}. */
export async function openFallback(
  session: PostgresSession,
  { node, lane, known }: FallbackRequest,
): Promise<BucketRef | undefined> {
  const parameters = [session.offsetMs, uuidv7(), node.id, node.epoch, lane, [...known]];
  const [row] = await session.service(statements.openFallback, parameters);
  return row && { id: row['id'] as string, epoch: row['epoch'] as number, lane, kind: 'fallback', node };
}

/** See {@link JobStore.fallbackNeeded}. */
export async function fallbackNeeded(
  session: PostgresSession,
  request: FallbackNeedRequest,
): Promise<FallbackNeed> {
  const [row] = await session.service(statements.fallbackNeeded, statements.neededParameters(request));
  return statements.decodeNeed(row);
}
