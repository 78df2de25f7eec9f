import { createServer } from 'node:net';
import { Logger } from '@nestjs/common';
import { EmbeddedInProductionError, EmbeddedStartError } from '../errors/embedded-errors.js';
import { DEFAULTS } from '../ratchet.defaults.js';
import { type EmbeddedDatabaseOptions } from '../ratchet.options.js';
import { findBinaries } from './binaries.js';
import { DataFolder } from './data-folder.js';
import { withLock } from './folder-lock.js';
import { findPostmaster, LOGIN, type Postmaster } from './postmaster.js';
import { Programs } from './programs.js';

/** A running server for development. */
export interface EmbeddedPostgres {
  /** `postgres://…@127.0.0.1:port/postgres`, for any client. */
  readonly url: string;
  readonly port: number;
  /** The absolute path of the data. */
  readonly dataDir: string;
  /** Stops the server, unless another live process uses it as well. Idempotent. */
  stop(): Promise<void>;
}

const START_ATTEMPTS = 3;
const logger = new Logger('RatchetEmbedded');

/**
 * Starts PostgreSQL on a folder, or joins the server that already runs on it: one that a killed process left behind, or
 * that another live process uses (the last one out stops it). The data stay.
 *
 * The server is a process group of its own, so that neither Ctrl-C in the terminal nor a signal to this process takes the
 * database from under a drain.
 *
 * @throws EmbeddedInProductionError under NODE_ENV=production.
 * @throws EmbeddedMissingError, EmbeddedFolderError, EmbeddedVersionError, EmbeddedStartError
 */
export async function startEmbeddedPostgres(
  options: EmbeddedDatabaseOptions = {},
): Promise<EmbeddedPostgres> {
  if (process.env['NODE_ENV'] === 'production') throw new EmbeddedInProductionError();
  const folder = new DataFolder(options.dataDir ?? DEFAULTS.embedded.dataDir);
  const programs = await Programs.of(await findBinaries());
  await folder.prepare(programs);
  const server = await withLock(folder.lockFile, async () => {
    await folder.initialize(programs);
    const running = await findPostmaster(folder.path);
    if (running && options.port !== undefined && options.port !== running.port) {
      logger.warn(
        `The server of ${folder.path} already runs, on port ${running.port} and not on ${options.port}`,
      );
    }
    const found = running ?? (await start(folder, programs, options.port));
    await folder.join();
    logger.log(
      `PostgreSQL on 127.0.0.1:${found.port}, data in ${folder.path}${running ? ' (was already running)' : ''}`,
    );
    return found;
  });
  return new RunningServer(server, folder, programs);
}

async function start(
  folder: DataFolder,
  programs: Programs,
  fixedPort: number | undefined,
): Promise<Postmaster> {
  let reason = '';
  for (let attempt = 1; attempt <= START_ATTEMPTS; attempt += 1) {
    const port = fixedPort ?? (await freePort());
    const { code, output } = await programs.run('pg_ctl', [
      ...['start', '-D', folder.path, '-l', folder.logFile, '-w', '-t', '60'],
      ...['-o', `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''`],
    ]);
    const started = code === 0 ? await findPostmaster(folder.path) : undefined;
    if (started) return started;
    reason = [output.trim(), await folder.logTail()].filter(Boolean).join('\n');
    // Somebody took the free port in between: another one is tried.
    if (fixedPort !== undefined || !/address already in use|could not bind/i.test(reason)) break;
  }
  throw new EmbeddedStartError(`the server of "${folder.path}" did not start`, reason);
}

class RunningServer implements EmbeddedPostgres {
  readonly url: string;
  readonly port: number;
  readonly dataDir: string;
  #stopped: Promise<void> | undefined;
  readonly #onExit = (): void => {
    this.#leaveAtExit();
  };

  constructor(
    private readonly postmaster: Postmaster,
    private readonly folder: DataFolder,
    private readonly programs: Programs,
  ) {
    this.port = postmaster.port;
    this.dataDir = folder.path;
    this.url = `postgres://${LOGIN.user}:${LOGIN.password}@${LOGIN.host}:${postmaster.port}/${LOGIN.database}`;
    process.once('exit', this.#onExit);
  }

  stop(): Promise<void> {
    this.#stopped ??= withLock(this.folder.lockFile, () => this.#stop());
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    process.removeListener('exit', this.#onExit);
    if (this.folder.leave() > 0) {
      logger.log(`PostgreSQL on 127.0.0.1:${this.port} keeps running: another process uses it`);
      return;
    }
    const { code, output } = await this.programs.run('pg_ctl', [
      ...['stop', '-D', this.folder.path, '-m', 'fast', '-w', '-t', '30'],
    ]);
    if (code === 0) logger.log(`PostgreSQL on 127.0.0.1:${this.port} stopped`);
    else logger.warn(`PostgreSQL on 127.0.0.1:${this.port} did not stop: ${output.trim()}`);
  }

  /** `process.exit()` without a close: nothing asynchronous is possible any more, and the server should not outlive it. */
  #leaveAtExit(): void {
    try {
      if (this.folder.leave() === 0) process.kill(this.postmaster.pid, 'SIGINT');
    } catch {
      // It is gone already.
    }
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}
