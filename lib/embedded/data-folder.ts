import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { chown, mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describeError } from '../errors/describe-error.js';
import { EmbeddedFolderError, EmbeddedVersionError } from '../errors/embedded-errors.js';
import { LOGIN } from './postmaster.js';
import { type Programs } from './programs.js';

/**
 * The server's data, and beside it `<dataDir>.run`: the lock, the server's log, and a file for each application that uses
 * the server.
 */
export class DataFolder {
  readonly path: string;
  readonly #run: string;
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

  /** Makes what lies beside the data. */
  async prepare(programs: Programs): Promise<void> {
    try {
      await mkdir(join(this.#run, 'users'), { recursive: true });
      if (programs.user) await chown(this.#run, programs.user.uid, programs.user.gid);
    } catch (error) {
      throw this.#unusable(error);
    }
    if (await programs.canEnter(this.#run)) return;
    throw new EmbeddedFolderError(
      this.path,
      'is out of reach of the user postgres, and the server cannot run as root; ' +
        'choose a dataDir where others may enter (not below a home of mode 0700)',
    );
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
