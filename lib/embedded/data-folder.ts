import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { chown, mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import { describeError } from '../errors/describe-error.js';
import { EmbeddedFolderError, EmbeddedVersionError } from '../errors/embedded-errors.js';
import { LOGIN } from './postmaster.js';
import { type Programs } from './programs.js';
import { reachablePlace, requireOwned } from './reachable.js';

const logger = new Logger('RatchetEmbedded');

/**
 * The server's data, and beside it `<dataDir>.run`: the lock, the server's log, and a file for each application that uses
 * the server.
 */
export class DataFolder {
  path: string;
  #run: string;
  readonly #user = `${process.pid}-${randomBytes(4).toString('hex')}`;

  constructor(dataDir: string) {
    this.path = resolve(dataDir);
    this.#run = `${this.path}.run`;
  }

  get lockFile(): string {
    return join(this.#run, 'lock');
  }

  get logFile(): string {
    return join(this.#run, 'server.log');
  }

  /** Makes what lies beside the data; moves to where the server's user can go when it cannot come here. */
  async prepare(programs: Programs): Promise<void> {
    await this.#make(programs);
    if (await programs.canEnter(this.#run)) return;
    const asked = this.path;
    this.path = reachablePlace(asked, 'data');
    this.#run = `${this.path}.run`;
    await this.#make(programs, (made) => requireOwned(made, [0, programs.user?.uid ?? 0]));
    logger.warn(
      `the server cannot run as root, and the user postgres cannot enter ${asked}: its data are in ${this.path} instead`,
    );
  }

  async #make(programs: Programs, check?: (made: string) => Promise<void>): Promise<void> {
    try {
      await mkdir(this.#run, { recursive: true });
      // Before anything in it is written or given away.
      await check?.(this.#run);
      await mkdir(join(this.#run, 'users'), { recursive: true });
      if (programs.user) await chown(this.#run, programs.user.uid, programs.user.gid);
    } catch (error) {
      throw this.#unusable(error);
    }
  }

  /** Sets up the data if there is none. */
  async initialize(programs: Programs): Promise<void> {
    const installed = await programs.majorVersion();
    const found = await this.#version();
    if (found !== undefined && found !== installed)
      throw new EmbeddedVersionError(this.path, found, installed);
    if (found !== undefined) return;
    // In another place first: what a killed process leaves half done must not look like a data folder.
    const fresh = join(this.#run, 'new');
    const passwordFile = join(this.#run, 'password');
    await rm(fresh, { recursive: true, force: true });
    await writeFile(passwordFile, LOGIN.password);
    try {
      const { code, output } = await programs.run('initdb', [
        ...['-D', fresh, '-U', LOGIN.user, `--pwfile=${passwordFile}`],
        ...['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C'],
      ]);
      if (code !== 0) throw new EmbeddedFolderError(this.path, `could not be set up: ${output.trim()}`);
      await rmdir(this.path).catch(() => undefined);
      await rename(fresh, this.path);
    } catch (error) {
      throw this.#unusable(error);
    } finally {
      await rm(passwordFile, { force: true });
    }
  }

  /** From now on this application uses the server. */
  async join(): Promise<void> {
    await writeFile(join(this.#run, 'users', this.#user), '');
  }

  /** Not any more. Synchronous, because the last chance to say so is the process's `exit` event. Returns how many others do. */
  leave(): number {
    const users = join(this.#run, 'users');
    rmSync(join(users, this.#user), { force: true });
    const others = readdirSync(users).filter((name) => {
      const live = isLive(Number.parseInt(name, 10));
      if (!live) rmSync(join(users, name), { force: true });
      return live;
    });
    return others.length;
  }

  /** The end of the server's log, to say why it would not start. */
  async logTail(): Promise<string> {
    const log = await readFile(this.logFile, 'utf8').catch(() => '');
    return log.trim().split('\n').slice(-5).join('\n');
  }

  async #version(): Promise<string | undefined> {
    try {
      return (await readFile(join(this.path, 'PG_VERSION'), 'utf8')).trim();
    } catch (error) {
      if (describeError(error).code !== 'ENOENT') throw this.#unusable(error);
    }
    const entries = await readdir(this.path).catch(() => []);
    if (entries.length === 0) return undefined;
    throw new EmbeddedFolderError(
      this.path,
      'is not empty and holds no PostgreSQL data; choose another dataDir',
    );
  }

  #unusable(error: unknown): unknown {
    const { code } = describeError(error);
    if (code === 'EMBEDDED_FOLDER' || code === undefined) return error;
    return new EmbeddedFolderError(
      this.path,
      `cannot be used (${code}); choose another dataDir, or mend it`,
      error,
    );
  }
}

function isLive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return describeError(error).code === 'EPERM';
  }
}
