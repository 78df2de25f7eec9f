import { spawnSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describeError } from '../errors/describe-error.js';
import { EmbeddedFolderError } from '../errors/embedded-errors.js';

/** A server that runs on a data folder. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
}

export const LOGIN = Object.freeze({
  user: 'postgres',
  password: 'ratchet',
  database: 'postgres',
  host: '127.0.0.1',
});

const LOOK_EVERY_MS = 100;
const PATIENCE_MS = 60_000;

/**
 * The server that already runs on the folder, if one does: left behind by a killed process, or shared with a live one.
 * Trusts `postmaster.pid` only as far as the server behind it answers. One that is starting, recovering or stopping is
 * waited for; a file whose process is gone, or is another program by now, is removed.
 */
export async function findPostmaster(dataDir: string): Promise<Postmaster | undefined> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const noted = readPidFile(dataDir);
    if (!noted) return undefined;
    if (!isLivePostgres(noted.pid)) {
      await rm(pidFile(dataDir), { force: true });
      return undefined;
    }
    const answer = await ask(noted, dataDir);
    if (answer === 'ours') return noted;
    if (answer === 'elsewhere') {
      await rm(pidFile(dataDir), { force: true });
      return undefined;
    }
    if (answer === 'stranger') {
      throw new EmbeddedFolderError(
        dataDir,
        `is in use by a PostgreSQL (pid ${noted.pid}, port ${noted.port}) that Ratchet did not set up; choose another dataDir`,
      );
    }
    if (performance.now() > giveUpAt) {
      throw new EmbeddedFolderError(
        dataDir,
        `is held by a PostgreSQL (pid ${noted.pid}, port ${noted.port}) that does not answer; stop it (kill -INT ${noted.pid}) and start again`,
      );
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/** What the folder says of its server. */
export function readPidFile(dataDir: string): Postmaster | undefined {
  try {
    const lines = readFileSync(pidFile(dataDir), 'utf8').split('\n');
    const pid = Number.parseInt(lines[0] ?? '', 10);
    // Not there yet while the server starts.
    const port = Number.parseInt(lines[3] ?? '', 10);
    return pid > 0 ? { pid, port: Number.isNaN(port) ? 0 : port } : undefined;
  } catch {
    return undefined;
  }
}

function pidFile(dataDir: string): string {
  return join(dataDir, 'postmaster.pid');
}

/** Pids are used again, and a container without an init leaves zombies: alive alone says little. */
function isLivePostgres(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (describeError(error).code !== 'EPERM') return false;
  }
  const state = programOf(pid);
  return state === undefined || (!state.startsWith('Z') && state.includes('postgres'));
}

/** `S postgres`: state and program of a process, where the system tells. */
function programOf(pid: number): string | undefined {
  if (process.platform === 'win32') return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const end = stat.lastIndexOf(')');
    return `${stat.slice(end + 2, end + 3)} ${stat.slice(stat.indexOf('(') + 1, end)}`;
  } catch {
    const { stdout, status } = spawnSync('ps', ['-o', 'stat=,comm=', '-p', String(pid)], {
      encoding: 'utf8',
    });
    return status === 0 ? stdout.trim() : undefined;
  }
}

/** A pid that was used again may be a server of another folder: it is asked which one it serves. */
async function ask(
  { port }: Postmaster,
  dataDir: string,
): Promise<'ours' | 'elsewhere' | 'silent' | 'stranger'> {
  if (port === 0) return 'silent';
  const client = new pg.Client({ ...LOGIN, port, connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ data_directory: string }>('show data_directory');
    return rows[0]?.data_directory === realpathSync(dataDir) ? 'ours' : 'elsewhere';
  } catch (error) {
    // 28P01 and 28000: it let us knock, and does not know our login.
    return describeError(error).code?.startsWith('28') ? 'stranger' : 'silent';
  } finally {
    await client.end().catch(() => undefined);
  }
}
