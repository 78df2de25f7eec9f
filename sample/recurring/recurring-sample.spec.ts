import { spawn } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../test/support/database.js';
import { compileFolder } from '../../test/support/compile.mjs';

const ROOT = join(import.meta.dirname, '..', '..');
/** The library as a package, and the sample compiled, as users run them. */
const STAGE = join(ROOT, '.ratchet', 'sample-recurring-spec');

/** Runs it to its end. */
async function run(databaseUrl: string): Promise<{ code: number | null; lines: string[] }> {
  const lines: string[] = [];
  const child = spawn(process.execPath, [join(STAGE, 'sample', 'dist', 'recurring', 'main.js')], {
    env: { ...process.env, DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => lines.push(line));
  }
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, lines };
}

describe('the sample of recurring schedules, as users run it', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    rmSync(STAGE, { recursive: true, force: true });
    compileFolder(join(ROOT, 'sample'), join(STAGE, 'sample', 'dist'));
    compileFolder(join(ROOT, 'lib'), join(STAGE, 'node_modules', 'nestjs-ratchet', 'dist'));
    cpSync(join(ROOT, 'package.json'), join(STAGE, 'node_modules', 'nestjs-ratchet', 'package.json'));
    writeFileSync(join(STAGE, 'package.json'), '{ "name": "ticks", "type": "module" }');
    database = await createTestDatabase();
  }, 120_000);

  afterAll(async () => {
    await database.drop();
    rmSync(STAGE, { recursive: true, force: true });
  });

  it('shows one run of each occurrence while one of three processes is killed', async () => {
    const { code, lines } = await run(database.url);
    expect(lines.at(-1)).toMatch(/^1\d occurrences, 1\d jobs, none missing, none twice\.$/);
    expect(lines.filter((line) => line.includes('kill -9 node-'))).toHaveLength(1);
    expect(code).toBe(0);
  }, 90_000);
});
