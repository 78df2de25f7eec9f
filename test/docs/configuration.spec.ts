import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { DEFAULTS } from '../../lib/ratchet.defaults.js';
import { readPage, ROOT, tableRows } from './markdown.js';

/** The paths of all options (`retention.history`, `lanes.*.concurrency`), read from the type. */
function optionPaths(file: string, typeName: string): Set<string> {
  const program = ts.createProgram([join(ROOT, file)], {
    strict: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    skipLibCheck: true,
    noEmit: true,
  });
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(join(ROOT, file))!;
  const declaration = source.statements.find(
    (node): node is ts.TypeAliasDeclaration | ts.InterfaceDeclaration =>
      (ts.isTypeAliasDeclaration(node) || ts.isInterfaceDeclaration(node)) && node.name.text === typeName,
  )!;
  const found = new Set<string>();
  walk(checker.getTypeAtLocation(declaration.name), '');
  return found;

  function walk(type: ts.Type, prefix: string): void {
    for (const part of type.isUnion() ? type.types : [type]) {
      const record = part.getStringIndexType();
      if (record) walk(record, `${prefix}*.`);
      for (const property of ours(part)) {
        const path = `${prefix}${property.name}`;
        const propertyType = checker.getNonNullableType(checker.getTypeOfSymbol(property));
        if (propertyType.flags & (ts.TypeFlags.Undefined | ts.TypeFlags.Never)) continue;
        found.add(path);
        walk(propertyType, `${path}.`);
      }
    }
  }

  /** Properties that this project declares: those of strings, functions and TypeORM classes are nobody's options. */
  function ours(type: ts.Type): ts.Symbol[] {
    if (!(type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection))) return [];
    return type
      .getProperties()
      .filter((property) =>
        property.declarations?.every((node) =>
          /\/lib\/(ratchet\.(options|extras|ports)|jobs\/backoff)/.test(node.getSourceFile().fileName),
        ),
      );
  }
}

const unquote = (cell: string): string => cell.replaceAll('`', '');

describe('docs/configuration.md', () => {
  let rows: Map<string, string>;

  beforeAll(() => {
    rows = new Map(
      tableRows(readPage('docs/configuration.md'))
        .filter((cells) => cells.length === 4 && cells[0] !== 'option')
        .map(([option = '', , fallback = '']) => [unquote(option), fallback]),
    );
  });

  it('lists exactly the keys of RatchetOptions, and of what goes beside them', () => {
    // A group whose members are listed needs no row of its own.
    const listed = [...rows.keys()];
    const paths = [
      ...optionPaths('lib/ratchet.options.ts', 'RatchetOptions'),
      ...optionPaths('lib/ratchet.extras.ts', 'RatchetExtras'),
    ].filter((path) => rows.has(path) || !listed.some((option) => option.startsWith(`${path}.`)));
    expect(listed.toSorted()).toEqual(paths.toSorted());
  });

  it('states the defaults of DEFAULTS', () => {
    const show = (value: unknown): string =>
      typeof value === 'string'
        ? `'${value}'`
        : typeof value === 'number'
          ? value.toLocaleString('en').replaceAll(',', '_')
          : String(value);
    const expected: Record<string, string> = {};
    const collect = (value: object, prefix: string): void => {
      for (const [key, part] of Object.entries(value) as [string, unknown][]) {
        if (typeof part === 'object' && part !== null) collect(part, `${prefix}${key}.`);
        else expected[`${prefix}${key}`] = show(part);
      }
    };
    const { backoff, pool, embedded, lane, ...plain } = DEFAULTS;
    collect(plain, '');
    collect(lane, 'lanes.*.');
    collect(embedded, 'database.embedded.');
    expected['backoff.type'] = show(backoff.type);
    expected['backoff.delay'] = `'${backoff.delayMs / 1_000}s'`;
    expected['backoff.maxDelay'] = `'${backoff.maxDelayMs / 3_600_000}h'`;
    expected['backoff.jitter'] = show(backoff.jitter);
    expected['pool.exchange'] = show(pool.exchange);

    const documented = Object.fromEntries(
      Object.keys(expected).map((option) => [option, unquote(rows.get(option) ?? 'not documented')]),
    );
    expect(documented).toEqual(expected);
    expect(unquote(rows.get('pool.client') ?? '')).toBe(
      `${pool.client}; ${pool.clientWithoutWorker} with worker: false`,
    );
  });
});
