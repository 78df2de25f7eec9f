import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';

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
    let text = ts.transpileModule(readFileSync(join(from, file), 'utf8'), {
      fileName: file,
      compilerOptions: {
        target: ts.ScriptTarget.ES2022,
        module: ts.ModuleKind.ESNext,
        verbatimModuleSyntax: true,
        experimentalDecorators: true,
        emitDecoratorMetadata: true,
      },
    }).outputText;
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
