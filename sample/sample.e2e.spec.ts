import { spawn, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { compileFolder } from '../test/support/compile.mjs';

const ROOT = join(import.meta.dirname, '..');
/** A copy of library and sample as users run them: compiled, the library found as a package. `dist` is left to the build. */
const STAGE = join(ROOT, '.ratchet', 'sample-e2e');

function stage(): void {
  rmSync(STAGE, { recursive: true, force: true });
  compileFolder(join(ROOT, 'sample'), join(STAGE, 'sample', 'dist'));
  compileFolder(join(ROOT, 'lib'), join(STAGE, 'node_modules', 'nestjs-ratchet', 'dist'));
  cpSync(join(ROOT, 'package.json'), join(STAGE, 'node_modules', 'nestjs-ratchet', 'package.json'));
  writeFileSync(join(STAGE, 'package.json'), '{ "name": "shop", "type": "module" }');
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ratchet-sample-'));
  // Run as root, the server becomes the user postgres, who must get in.
  chmodSync(folder, 0o755);
  return folder;
}

/** A start of the sample, with its lines. */
class Start {
  readonly lines: string[] = [];
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  readonly #child: ChildProcess;
  readonly #seen: { pattern: RegExp; found: () => void }[] = [];

  constructor(folder: string, ...flags: string[]) {
    const env = { ...process.env };
    delete env['DATABASE_URL'];
    this.#child = spawn(
      process.execPath,
      [
        join(STAGE, 'sample', 'dist', 'main.js'),
        '--fast',
        `--orders=${join(ROOT, 'sample', 'data', 'orders.csv')}`,
        `--data=${join(folder, 'postgres')}`,
        `--output=${join(folder, 'invoices')}`,
        ...flags,
      ],
      { env, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      createInterface({ input: stream }).on('line', (line) => {
        this.lines.push(line);
        for (const { pattern, found } of this.#seen) if (pattern.test(line)) found();
      });
    }
    this.ended = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => resolve({ code, signal }));
    });
  }

  /** The first line that matches. Rejects when the process ends without it. */
  async line(pattern: RegExp): Promise<string> {
    await Promise.race([
      new Promise<void>((found) => {
        this.#seen.push({ pattern, found });
        if (this.lines.some((line) => pattern.test(line))) found();
      }),
      this.ended,
    ]);
    const line = this.lines.find((text) => pattern.test(text));
    if (line === undefined) throw new Error(`no line ${String(pattern)} in:\n${this.lines.join('\n')}`);
    return line;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** A figure of the table. */
  figure(label: string): number {
    const row = this.lines.findLast((line) => line.trim().startsWith(label));
    return Number(/([\d.]+)$/.exec(row ?? '')?.[1]);
  }
}

describe('the sample, as users run it', () => {
  let folder: string;

  beforeAll(stage, 120_000);
  afterAll(() => rmSync(STAGE, { recursive: true, force: true }));
  afterEach(async () => {
    // Takes the server over and stops it, whatever the test left behind.
    const last = new Start(folder);
    await last.ended;
    rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  const files = (): string[] => readdirSync(join(folder, 'invoices')).toSorted();
  const total = (): string => {
    const cents = files()
      .map((file) => /Total EUR +([\d.]+)/.exec(readFileSync(join(folder, 'invoices', file), 'utf8'))?.[1])
      .reduce((sum, euros) => sum + Math.round(Number(euros) * 100), 0);
    return (cents / 100).toFixed(2);
  };

  it('loses nothing and repeats nothing when it is killed twice and started again', async () => {
    folder = newFolder();

    const first = new Start(folder);
    await first.line(/ [1-9]\d* of 60 invoices/);
    first.kill('SIGKILL');
    await first.ended;
    const afterKill = files().filter((file) => file.startsWith('INV-'));
    expect(afterKill.length).toBeGreaterThan(0);
    expect(afterKill.length).toBeLessThan(60);

    const second = new Start(folder);
    await second.line(/ [3-5]\d of 60 invoices/);
    second.kill('SIGKILL');
    await second.ended;

    const third = new Start(folder);
    expect(await third.ended).toEqual({ code: 0, signal: null });
    expect(await third.line(/orders in the file/)).toContain('0 of them new');

    expect(files()).toEqual(Array.from({ length: 60 }, (_, index) => `INV-A-${1001 + index}.txt`));
    expect(third.figure('orders ')).toBe(60);
    expect(third.figure('invoice jobs')).toBe(60);
    expect(third.figure('succeeded')).toBe(60);
    expect(third.figure('invoice files')).toBe(60);
    expect(third.figure('redriven')).toBe(1);
    expect(third.figure('failed for good')).toBe(1);
    expect(third.figure('failed and retried')).toBeGreaterThan(0);
    expect(third.figure('cut off by a kill')).toBeGreaterThan(0);
    expect(third.figure('invoiced, EUR').toFixed(2)).toBe(total());
    const parts = ['succeeded', 'failed and retried', 'failed for good', 'cut off by a kill'];
    expect(third.figure('executions')).toBe(parts.reduce((sum, part) => sum + third.figure(part), 0));

    const fourth = new Start(folder);
    expect(await fourth.ended).toEqual({ code: 0, signal: null });
    await fourth.line(/Everything is already done.*--reset/);
    expect(fourth.figure('executions')).toBe(third.figure('executions'));
  }, 120_000);

  it('finishes what is under way when it is interrupted, and goes on at the next start', async () => {
    folder = newFolder();

    const first = new Start(folder);
    await first.line(/ [1-9]\d* of 60 invoices/);
    first.kill('SIGINT');
    expect(await first.ended).toEqual({ code: 130, signal: null });
    await first.line(/npm start goes on from here/);
    expect(existsSync(join(folder, 'postgres', 'postmaster.pid'))).toBe(false);
    const built = first.figure('invoice files');
    expect(first.figure('succeeded')).toBe(built);

    const second = new Start(folder);
    expect(await second.ended).toEqual({ code: 0, signal: null });
    expect(second.figure('succeeded')).toBe(60);
    expect(second.lines.join('\n')).not.toContain('cut off by a kill');

    const third = new Start(folder, '--reset');
    expect(await third.ended).toEqual({ code: 0, signal: null });
    expect(await third.line(/orders in the file/)).toContain('60 of them new');
  }, 120_000);
});
