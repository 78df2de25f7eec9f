/**
 * Tries the package as users get it: packs it, unpacks it where nothing of the source is near, and runs small programs on
 * it. Needs `npm run build` before. Their other packages are found in the repository's node_modules.
 */
import { fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { transform } from '@swc/core';
import ts from 'typescript';
import { Checks, pack, ROOT, run } from './packed.mjs';
import { modulesOf } from './typings.mjs';

const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const home = join(ROOT, 'node_modules', '.pack-smoke');
const installed = join(home, 'node_modules', 'nestjs-ratchet');
const data = await mkdtemp(join(tmpdir(), 'ratchet-smoke-'));
const checks = new Checks();
/** The entries that are for users of optional peers. */
const OPTIONAL_OF = { './class-validator': ['class-transformer', 'class-validator'] };

async function install() {
  await rm(home, { recursive: true, force: true });
  await mkdir(installed, { recursive: true });
  const tarball = await pack(home);
  await run('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  await cp(join(ROOT, 'test', 'packaging', 'programs'), home, { recursive: true });
  // The server's user, when this runs as root, has to enter it.
  await chmod(data, 0o755);
}

/** What a program printed; of one that failed, why. */
async function node(...parameters) {
  try {
    return (await run(process.execPath, parameters, { cwd: home, timeout: 120_000 })).stdout.trim();
  } catch (error) {
    return `failed: ${error.stderr || error.message}`;
  }
}

async function contents() {
  checks.equal(
    'the tarball holds no source and no test',
    existsSync(join(installed, 'lib')) || existsSync(join(installed, 'test')),
    false,
  );
  const { optional, known } = peers();
  for (const [name, { types }] of Object.entries(manifest.exports)) {
    if (!types) continue;
    const needed = await modulesOf(join(installed, types));
    const own = OPTIONAL_OF[name] ?? [];
    const foreign = needed.filter((module) => optional.includes(module) && !own.includes(module));
    checks.equal(`the typings of ${name} need no optional peer of another entry`, foreign.join(), '');
    // Who runs the contract suites of the testing entry has the types of pg.
    if (name === './testing') continue;
    const undeclared = needed.filter((module) => ![...known, ...own].includes(module));
    checks.equal('and nothing that is not declared', undeclared.join(), '');
  }
}

function peers() {
  const { peerDependencies = {}, peerDependenciesMeta = {}, dependencies = {} } = manifest;
  const optional = Object.keys(peerDependenciesMeta).filter((name) => peerDependenciesMeta[name].optional);
  const required = Object.keys(peerDependencies).filter((name) => !optional.includes(name));
  // Types of pg come from a package that a user of TypeORM need not have.
  return { optional, known: [...Object.keys(dependencies), ...required].filter((name) => name !== 'pg') };
}

async function loads() {
  checks.equal(
    'a worker node sends heartbeats from a thread of its own, and says so to its probes',
    await node('heartbeat.mjs', join(data, 'heartbeat')),
    'alive up up',
  );
  checks.equal(
    'import: boots and runs a job',
    await node('import.mjs', join(data, 'import')),
    'succeeded finished',
  );
  checks.equal(
    'require: every entry, the same classes',
    await node('require.cjs'),
    `true true ${manifest.version}`,
  );
  await compile('decorated.ts', 'decorated.mjs', bySwc(true));
  checks.equal(
    'a decorated handler loads, compiled by swc',
    await node('decorated.mjs'),
    'Object JobContext',
  );
}

const bySwc = (decoratorMetadata) => async (source) => {
  const { code } = await transform(source, {
    filename: 'source.ts',
    jsc: {
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata },
      target: 'es2022',
    },
    module: { type: 'es6' },
  });
  return code;
};

const byTypeScript = (source) =>
  ts.transpileModule(source, {
    compilerOptions: {
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ES2022,
      experimentalDecorators: true,
    },
  }).outputText;

async function compile(from, to, how) {
  await writeFile(join(home, to), await how(await readFile(join(home, from), 'utf8')));
}

async function classes() {
  for (const [name, how] of [
    ['swc', bySwc(true)],
    ['swc without metadata', bySwc(false)],
    ['TypeScript without metadata', byTypeScript],
  ]) {
    await compile('class-schema.ts', 'class-schema.mjs', how);
    checks.equal(
      `class-validator: a class as a schema, compiled by ${name}`,
      await node('class-schema.mjs'),
      '1 2030 items.1.sku',
    );
  }
  checks.equal(
    'class-validator: what is not installed is named',
    await node('without-peers.cjs'),
    'CLASS_SCHEMA_PACKAGE_MISSING npm install class-validator class-transformer',
  );
}

async function withoutTerminus() {
  checks.equal(
    'health: what is not installed is named',
    await node('without-terminus.mjs'),
    'HEALTH_PACKAGE_MISSING npm install @nestjs/terminus',
  );
}

/** Starts the worker, waits until its job has begun, and ends it. Says how it ended and which job that was. */
async function killed(dataDir, slowMs, kill) {
  const child = fork(join(home, 'run.mjs'), [dataDir, String(slowMs)], { cwd: home, detached: true });
  const said = [];
  await new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the worker ended too early (${code})`)));
    child.on('message', (line) => {
      said.push(line);
      if (said.length === 2) resolve();
    });
  });
  child.removeAllListeners('exit');
  const end = new Promise((resolve) => child.once('exit', (code, signal) => resolve(`${code} ${signal}`)));
  kill(child.pid);
  return { end: await end, id: said.find((line) => line !== 'begun') };
}

async function signals() {
  const dataDir = join(data, 'signals');
  const serverFile = join(dataDir, 'postmaster.pid');
  // To the whole group, as Ctrl-C in a terminal does.
  const stopped = await killed(dataDir, 700, (pid) => process.kill(-pid, 'SIGINT'));
  checks.equal('SIGINT: ends by itself', stopped.end, 'null SIGINT');
  checks.equal('SIGINT: the server is stopped last', existsSync(serverFile), false);
  checks.equal(
    'SIGINT: the running job finished while the database was there',
    await node('report.mjs', dataDir, stopped.id),
    'succeeded finished [succeeded]',
  );
  const crashed = await killed(dataDir, 60_000, (pid) => process.kill(pid, 'SIGKILL'));
  checks.equal('SIGKILL: the server runs on', existsSync(serverFile), true);
  checks.equal(
    'SIGKILL: the next start takes server and job over',
    await node('report.mjs', dataDir, crashed.id),
    'succeeded finished [crashed, succeeded]',
  );
  checks.equal('and stops the server', existsSync(serverFile), false);
}

try {
  await install();
  await contents();
  await loads();
  await classes();
  await withoutTerminus();
  await signals();
} finally {
  await rm(data, { recursive: true, force: true });
  await rm(home, { recursive: true, force: true });
}
checks.finish();
