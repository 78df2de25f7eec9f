import { createHash } from 'node:crypto';
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What was transpiled before, by content: a dozen spec files and each run need the same again. */
const KEPT = fileURLToPath(new URL('../../.ratchet/compiled', import.meta.url));
const KEPT_FOR_MS = 7 * 86_400_000;
const require = createRequire(import.meta.url);
/** Another compiler, or other options, make another text. */
const HOW = [readFileSync(fileURLToPath(import.meta.url)), require('typescript/package.json').version].join();

/**
 * Transpiles a folder for processes that know no jest. A copy of its own is written, so that `dist` is left to the build.
 * Mutations break it on purpose, for negative controls; one that changes nothing throws, since a control that controls
 * nothing must not pass.
 */
export function compileFolder(from, to, mutations = []) {
  const made = new Set();
  for (const file of readdirSync(from, { recursive: true, encoding: 'utf8' })) {
    const skipped =
      /(^|[/\\])(dist|output|node_modules)[/\\]/.test(file) ||
      !/\.m?[jt]s$/.test(file) ||
      file.endsWith('.spec.ts');
    if (skipped) continue;
    const target = join(to, file.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    if (!file.endsWith('.ts')) {
      cpSync(join(from, file), target);
      continue;
    }
    let text = transpiled(readFileSync(join(from, file), 'utf8'));
    for (const mutation of mutations.filter((each) => file.endsWith(each.file))) {
      const mutated = text.replaceAll(mutation.from, mutation.to);
      if (mutated !== text) made.add(mutation);
      text = mutated;
    }
    writeFileSync(target, text);
  }
  for (const mutation of mutations) {
    if (!made.has(mutation)) throw new Error(`nothing in ${mutation.file} matches ${String(mutation.from)}`);
  }
}

/** Files change all the time; what they were a week ago is of no use. */
export function forgetOldCompilations() {
  mkdirSync(KEPT, { recursive: true });
  for (const name of readdirSync(KEPT)) {
    const path = join(KEPT, name);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat && Date.now() - stat.mtimeMs > KEPT_FOR_MS) rmSync(path, { force: true });
  }
}

function transpiled(source) {
  const path = join(KEPT, `${createHash('sha256').update(HOW).update(source).digest('hex')}.js`);
  try {
    return readFileSync(path, 'utf8');
  } catch {
    const text = transpile(source);
    mkdirSync(KEPT, { recursive: true });
    // Others look for it at the same time.
    const own = `${path}.${String(process.pid)}`;
    writeFileSync(own, text);
    renameSync(own, path);
    return text;
  }
}

function transpile(source) {
  // Slow to load, and mostly not needed.
  const ts = require('typescript');
  return ts.transpileModule(source, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
    },
  }).outputText;
}
