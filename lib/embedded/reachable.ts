import { createHash, randomBytes } from 'node:crypto';
import { chmod, cp, lstat, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Logger } from '@nestjs/common';
import { EmbeddedFolderError } from '../errors/embedded-errors.js';
import { type Binaries } from './binaries.js';

/** Survives a reboot, unlike /tmp; only Unix has a root to whom this matters. */
const COMMON_GROUND = '/var/tmp';
const logger = new Logger('RatchetEmbedded');

/** A place that every user can enter, always the same one for a path that only root can reach (a project below /root). */
export function reachablePlace(path: string, kind: string): string {
  const tail = createHash('sha256').update(path).digest('hex').slice(0, 12);
  return join(COMMON_GROUND, `ratchet-${kind}-${tail}`);
}

/**
 * Refuses what another user has put in that place: its name can be guessed.
 *
 * @throws EmbeddedFolderError
 */
export async function requireOwned(place: string, owners: readonly number[]): Promise<void> {
  const found = await lstat(place);
  if (found.isDirectory() && owners.includes(found.uid)) return;
  throw new EmbeddedFolderError(
    place,
    'belongs to somebody else; remove it, or choose a dataDir that the user postgres can enter',
  );
}

/** The programs where the server's user can run them, copied there once for each version and place. */
export async function reachableCopy(binaries: Binaries): Promise<Binaries> {
  const root = dirname(dirname(binaries.postgres));
  const { mtimeMs } = await lstat(binaries.postgres);
  const place = reachablePlace(`${root} ${mtimeMs}`, 'programs');
  if (!(await lstat(place).catch(() => undefined))) {
    logger.log(`the user postgres cannot reach ${root}: its programs are copied to ${place}`);
    const draft = `${place}.${randomBytes(4).toString('hex')}`;
    await cp(root, draft, { recursive: true, verbatimSymlinks: true });
    await chmod(draft, 0o755);
    // Somebody else may have been faster, with the same.
    await rename(draft, place).catch(() => rm(draft, { recursive: true, force: true }));
  }
  await requireOwned(place, [0]);
  const moved = (program: string): string => join(place, 'bin', basename(program));
  return {
    pg_ctl: moved(binaries.pg_ctl),
    initdb: moved(binaries.initdb),
    postgres: moved(binaries.postgres),
  };
}
