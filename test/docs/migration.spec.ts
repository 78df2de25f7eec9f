import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { readPage, ROOT, snippetsOf, tableRows } from './markdown.js';

const PAGE = 'docs/migration.md';
const OURS = 'Ratchet';

interface Row {
  readonly from: string;
  readonly theirs: string;
  readonly ours: string;
  readonly mind: string;
  readonly snippets: readonly string[];
}

/** The rows of the tables whose middle column is ours. */
function rowsOf(page: string): Row[] {
  let from = '';
  const rows: Row[] = [];
  for (const [theirs = '', ours = '', mind = ''] of tableRows(page)) {
    if (ours === OURS) from = theirs;
    else if (from !== '') {
      const snippets = [...ours.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replaceAll('\\|', '|'));
      rows.push({ from, theirs, ours, mind, snippets });
    }
  }
  return rows;
}

const page = readPage(PAGE);
const rows = rowsOf(page);
const preamble = /<!-- rows\n([\s\S]*?)-->/.exec(page)?.[1] ?? '';

/** Each snippet on a line of its own: a member of a class, or the body of a function. */
function lineOf(snippet: string, index: number): string {
  return /^(@|constructor\()/.test(snippet)
    ? `export class Row${index} { ${snippet} }`
    : `export async function row${index}(): Promise<void> { ${snippet}; await Promise.resolve(); }`;
}

const snippets = rows.flatMap(({ snippets }) => snippets);
const source = `${preamble}${snippets.map(lineOf).join('\n')}\n`;
const folder = join(ROOT, '.ratchet', 'migration');

/** The module of all rows, and beside it the files that the page names. */
function write(): string {
  mkdirSync(folder, { recursive: true });
  for (const { fileName, source: text } of snippetsOf(PAGE, 'ts')) {
    if (fileName !== undefined) writeFileSync(join(folder, fileName), text);
  }
  const path = join(folder, 'rows.ts');
  writeFileSync(path, source);
  return path;
}

function faultsOf(path: string): string[] {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), (file) => ts.sys.readFile(file)) as {
    config: { compilerOptions: object };
  };
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
  const program = ts.createProgram([path], {
    ...options,
    noEmit: true,
    isolatedModules: true,
    allowUnreachableCode: true,
  });
  const first = preamble.split('\n').length - 1;
  return ts.getPreEmitDiagnostics(program, program.getSourceFile(path)).map((fault) => {
    const line = fault.file?.getLineAndCharacterOfPosition(fault.start ?? 0).line ?? 0;
    const text = ts.flattenDiagnosticMessageText(fault.messageText, '\n');
    return `${snippets[line - first] ?? 'the preamble'}: ${text}`;
  });
}

describe(PAGE, () => {
  it('maps three libraries', () => {
    expect([...new Set(rows.map(({ from }) => from))]).toEqual(['BullMQ', 'pg-boss', 'graphile-worker']);
    const calls = rows.map(({ from, theirs }) => `${from}: ${theirs}`);
    expect(calls.length).toBeGreaterThan(90);
    expect(calls.filter((call, index) => calls.indexOf(call) !== index)).toEqual([]);
  });

  it('says in each row what to call, or plainly that there is nothing', () => {
    const silent = rows.filter(({ ours, snippets }) => (ours === 'None') === snippets.length > 0);
    expect(silent).toEqual([]);
    expect(rows.filter(({ ours, mind }) => ours === 'None' && mind.length < 11)).toEqual([]);
  });

  it('compiles in every row, and loads', async () => {
    const path = write();
    expect(faultsOf(path)).toEqual([]);
    const loaded = (await import(pathToFileURL(path).href)) as object;
    expect(Object.keys(loaded)).toHaveLength(snippets.length);
  }, 120_000);
});
