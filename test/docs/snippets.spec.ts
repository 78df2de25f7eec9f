import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { transform } from '@swc/core';
import { beforeAll, describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { pages, ROOT, snippetsOf, writeSnippets, type Snippet, type SnippetFile } from './markdown.js';

const snippets = writeSnippets(
  pages().flatMap((page) => snippetsOf(page, 'ts')),
  'snippets',
);
const titled = snippets.map((snippet) => [`${snippet.page}:${snippet.line}`, snippet] as const);

/** The line of the page that a position of the written file stands for. */
function pageLine(snippet: Snippet, line: number): number {
  return snippet.line + line - snippet.offset;
}

function compile(files: readonly SnippetFile[]): Map<string, string[]> {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as {
    config: { compilerOptions: object };
  };
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
  const program = ts.createProgram(
    files.map((file) => file.path),
    { ...options, noEmit: true, isolatedModules: true, noUnusedLocals: false },
  );
  const faults = new Map<string, string[]>();
  for (const diagnostic of ts.getPreEmitDiagnostics(program)) {
    const path = diagnostic.file?.fileName ?? '';
    const snippet = files.find((file) => file.path === path);
    const text = ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n');
    const line = diagnostic.file?.getLineAndCharacterOfPosition(diagnostic.start ?? 0).line ?? 0;
    const where = snippet ? `${snippet.page}:${pageLine(snippet, line)}` : `${path}:${line + 1}`;
    faults.set(path, [...(faults.get(path) ?? []), `${where} ${text}`]);
  }
  return faults;
}

describe('snippets of README and docs', () => {
  let faults: Map<string, string[]>;

  beforeAll(() => {
    faults = compile(snippets);
  }, 120_000);

  it('are there', () => {
    expect(snippets.length).toBeGreaterThan(20);
    expect(new Set(snippets.map((snippet) => snippet.path)).size).toBe(snippets.length);
  });

  it.each(titled)('%s compiles with isolatedModules', (_title, snippet) => {
    expect(faults.get(snippet.path) ?? []).toEqual([]);
  });

  it.each(titled)('%s loads through swc', async (_title, snippet) => {
    if (snippet.mark !== '') {
      // It would start an app, or define tests inside this one: it is enough that swc takes it.
      await transform(snippet.source, {
        filename: snippet.path,
        swcrc: false,
        jsc: {
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
        },
      });
    } else {
      await import(pathToFileURL(snippet.path).href);
    }
  });
});
