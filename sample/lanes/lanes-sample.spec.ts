import { spawn } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { compileFolder } from '../../test/support/compile.mjs';
import { createTestDatabase, type TestDatabase } from '../../test/support/database.js';

const ROOT = join(import.meta.dirname, '..', '..');
/** The library as a package, and the sample compiled, as users run them. */
const STAGE = join(ROOT, '.ratchet', 'sample-lanes-spec');

/** Runs it to its end. */
async function run(databaseUrl: string): Promise<{ code: number | null; lines: string[] }> {
  const lines: string[] = [];
  const child = spawn(process.execPath, [join(STAGE, 'sample', 'dist', 'lanes', 'main.js')], {
    env: { ...process.env, DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => lines.push(line));
  }
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, lines };
}

describe('the sample of lanes and priorities, as users run it', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    rmSync(STAGE, { recursive: true, force: true });
    compileFolder(join(ROOT, 'sample'), join(STAGE, 'sample', 'dist'));
    compileFolder(join(ROOT, 'lib'), join(STAGE, 'node_modules', 'nestjs-ratchet', 'dist'));
    cpSync(join(ROOT, 'package.json'), join(STAGE, 'node_modules', 'nestjs-ratchet', 'package.json'));
    writeFileSync(join(STAGE, 'package.json'), '{ "name": "lanes", "type": "module" }');
    database = await createTestDatabase();
  }, 120_000);

  afterAll(async () => {
    await database.drop();
    rmSync(STAGE, { recursive: true, force: true });
  });

  it('records each job once while a lane is paused, a node drained by hand and another killed; urgent ones wait less', async () => {
    const { code, lines } = await run(database.url);
    const text = lines.join('\n');
    expect(text).toMatch(/PRIORITY_DISABLED: .*"lowest" of lane "mail"/);
    expect(text).toMatch(/node-1: active -> paused: mail\/critical, mail\/critical, mail\/high, /);
    expect(text).toMatch(/while it is paused: 0 mails sent, [1-9]\d* reports built/);
    expect(text).toMatch(/node-2 has finished what ran, and its 7 buckets are gone/);
    expect(text).toMatch(/node-2: new -> active: .*reports\/all/);
    expect(text).toMatch(
      /kill -9 node-3: it leaves 7 buckets with \d+ jobs that had begun and [1-9]\d* that/,
    );
    expect(text).toMatch(/^(\d+) jobs enqueued, \1 in the database, \1 successes recorded: each once\.$/m);
    expect(text).toMatch(
      /^\d+ executions were cut off by the kill and charged; their jobs ran again elsewhere\.$/m,
    );
    expect(text).toMatch(/^mail: critical jobs waited \d+ ms, low ones \d+ ms\.$/m);
    expect(text).toMatch(/^reports: critical jobs waited \d+ ms, lowest ones \d+ ms\.$/m);
    expect(code).toBe(0);
  }, 120_000);
});
