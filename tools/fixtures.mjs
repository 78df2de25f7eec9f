/**
 * Installs the packed tarball into the apps of test/fixtures (each with the versions of its own lock file), compiles them
 * against its typings, and runs them on a real database. Needs `npm run build` before, and the registry.
 */
import { chmod, cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../dist/embedded/index.js';
import { Checks, pack, ROOT, run } from './packed.mjs';

const EXPECTED = Array(2)
  .fill([
    'succeeded: hello Ada 1 1',
    'succeeded: its own instance',
    'succeeded: hello committed 1 1',
    'gone',
    'true false',
  ])
  .flat()
  .join('\n');

const home = await mkdtemp(join(tmpdir(), 'ratchet-fixtures-'));
const checks = new Checks();

async function tryFixture(name, tarball, url) {
  const folder = join(home, name);
  await cp(join(ROOT, 'test', 'fixtures', name), folder, { recursive: true });
  await cp(join(ROOT, 'test', 'fixtures', 'main.ts'), join(folder, 'main.ts'));
  const npm = (...parameters) => run('npm', [...parameters, '--no-audit', '--no-fund'], { cwd: folder });
  await npm('ci');
  await npm('install', '--no-save', '--no-package-lock', tarball);
  checks.equal(`${name}: ${await versions(folder)} compiles`, await compile(folder), '');
  checks.equal(`${name}: runs`, await start(folder, { DATABASE_URL: url, RATCHET_SCHEMA: name }), EXPECTED);
}

async function versions(folder) {
  const version = async (name) =>
    JSON.parse(await readFile(join(folder, 'node_modules', name, 'package.json'), 'utf8')).version;
  return `Nest ${await version('@nestjs/core')}, TypeORM ${await version('typeorm')}`;
}

async function compile(folder) {
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  return run(process.execPath, [tsc, '-p', folder]).then(
    () => '',
    ({ stdout }) => stdout.trim(),
  );
}

async function start(folder, env) {
  return run(process.execPath, [join(folder, 'out', 'main.js')], {
    cwd: folder,
    env: { ...process.env, ...env },
    timeout: 120_000,
  }).then(
    ({ stdout }) => stdout.trim(),
    ({ stderr, message }) => `failed: ${stderr || message}`,
  );
}

try {
  await chmod(home, 0o755);
  const tarball = await pack(home);
  const server = await startEmbeddedPostgres({ dataDir: join(home, 'postgres') });
  try {
    for (const name of ['nest11', 'nest12']) await tryFixture(name, tarball, server.url);
  } finally {
    await server.stop();
  }
} finally {
  await rm(home, { recursive: true, force: true });
}
checks.finish();
