import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import ts from 'typescript';

const lib = join(import.meta.dirname, '../../lib');
const FILES = [
  'engine/execution-rejections.ts',
  'engine/async-context.ts',
  'errors/describe-error.ts',
  'errors/show-value.ts',
  'observability/own-context.ts',
];

/** Each case is a process of its own, because what is at stake is whether it lives. */
const PRELUDE = `
import { runInJob } from './engine/async-context.js';
import { watchRejections } from './engine/execution-rejections.js';
const job = { name: 'invoice.send', jobId: 'j1' };
const logger = { error: (line) => console.log('LOGGED ' + line.split('\\n')[0]) };
const inJob = (work) => runInJob(job, work);
process.on('exit', (code) => console.log('EXIT ' + code));
`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ratchet-rejections-'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  for (const file of FILES) {
    const target = join(folder, file.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    const compilerOptions = {
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ES2022,
    };
    writeFileSync(
      target,
      ts.transpileModule(readFileSync(join(lib, file), 'utf8'), { compilerOptions }).outputText,
    );
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(body: string, ...flags: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const file = join(folder, `case-${Math.random().toString(36).slice(2)}.mjs`);
  writeFileSync(file, PRELUDE + body);
  const env = { ...process.env, NODE_OPTIONS: '' };
  const child = spawn(process.execPath, [...flags, file], { env });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, err })));
}

const ALIVE = `setTimeout(() => console.log('ALIVE'), 50);`;

describe('a promise that a handler left behind', () => {
  it.each([
    ['at once', `inJob(() => { Promise.reject(new Error('floating')); });`],
    ['after an await', `inJob(async () => { await null; Promise.reject(new Error('floating')); });`],
    ['from a timer', `inJob(() => { setTimeout(() => Promise.reject(new Error('floating')), 5); });`],
    [
      'from an async function',
      `inJob(() => { (async () => { await 1; throw new Error('floating'); })(); });`,
    ],
  ])('is logged with its job and leaves the process alive: rejected %s', async (_when, body) => {
    const { code, out } = await run(`watchRejections(logger); ${body} ${ALIVE}`);
    expect(out).toContain(
      'LOGGED invoice.send (j1): a promise that its handler did not await was rejected: floating',
    );
    expect(out).toContain('await the promise');
    expect(out).toContain('ALIVE');
    expect(code).toBe(0);
  });

  it.each(['null', 'undefined', `'text'`, `Object.create(null)`])(
    'may be rejected with %s',
    async (reason) => {
      const { code, out } = await run(
        `watchRejections(logger); inJob(() => { Promise.reject(${reason}); }); ${ALIVE}`,
      );
      expect(out).toContain('LOGGED invoice.send');
      expect(code).toBe(0);
    },
  );

  it('leaves the process alive when the logger fails', async () => {
    const { code } = await run(
      `watchRejections({ error() { throw new Error('logger'); } }); inJob(() => { Promise.reject(new Error('x')); }); ${ALIVE}`,
    );
    expect(code).toBe(0);
  });
});

describe('a rejection of other code', () => {
  const FOREIGN = `Promise.reject(new Error('foreign'));`;

  it('ends the process as Node does', async () => {
    const [watched, plain] = await Promise.all([
      run(`watchRejections(logger); ${FOREIGN} ${ALIVE}`),
      run(`${FOREIGN} ${ALIVE}`),
    ]);
    expect(watched.code).toBe(plain.code);
    expect(watched.code).toBe(1);
    expect(watched.out).not.toContain('ALIVE');
    expect(watched.err).toContain('Error: foreign');
  });

  it('reaches uncaughtException with the origin that Node gives it, and the watch goes on', async () => {
    const { code, out } = await run(`
      watchRejections(logger);
      process.on('uncaughtException', (error, origin) => console.log('CAUGHT ' + error.message + ' ' + origin));
      ${FOREIGN}
      setTimeout(() => inJob(() => { Promise.reject(new Error('floating')); }), 20);
      ${ALIVE}`);
    expect(out).toContain('CAUGHT foreign unhandledRejection');
    expect(out).toContain('LOGGED invoice.send (j1)');
    expect(code).toBe(0);
  });

  it('is only warned of when Node was told so', async () => {
    const { code, out, err } = await run(
      `watchRejections(logger); ${FOREIGN} ${ALIVE}`,
      '--unhandled-rejections=warn',
    );
    expect(err).toContain('foreign');
    expect(out).toContain('ALIVE');
    expect(code).toBe(0);
  });

  it('is left to the listeners of the app', async () => {
    const { code, out } = await run(`
      process.on('unhandledRejection', (error) => console.log('APP ' + error.message));
      watchRejections(logger); ${FOREIGN} ${ALIVE}`);
    expect(out).toContain('APP foreign');
    expect(out).toContain('ALIVE');
    expect(code).toBe(0);
  });
});

it('is watched for all engines by one listener, until the last of them stops', async () => {
  const { out } = await run(`
    const count = () => process.listenerCount('unhandledRejection');
    const [first, second] = [watchRejections(logger), watchRejections({ error: () => undefined })];
    const counts = [count()];
    first(); first(); counts.push(count());
    second(); counts.push(count());
    console.log(counts.join());`);
  expect(out).toContain('1,1,0');
});
