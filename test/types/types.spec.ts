import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const here = import.meta.dirname;
const root = join(here, '../..');

function compile(file: string, edit: (source: string) => string = (source) => source): ts.Diagnostic[] {
  const config = ts.getParsedCommandLineOfConfigFile(
    join(root, 'tsconfig.json'),
    {},
    {
      ...ts.sys,
      onUnRecoverableConfigFileDiagnostic: (diagnostic) => {
        throw new Error(ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n'));
      },
    },
  )!;
  const options: ts.CompilerOptions = { ...config.options, noEmit: true, isolatedModules: true };
  const path = join(here, file);
  const host = ts.createCompilerHost(options);
  const readFile = host.readFile.bind(host);
  host.readFile = (name) => (name === path ? edit(readFileSync(path, 'utf8')) : readFile(name));
  const program = ts.createProgram([path], options, host);
  return ts
    .getPreEmitDiagnostics(program, program.getSourceFile(path))
    .concat(program.getGlobalDiagnostics());
}

const text = (diagnostics: readonly ts.Diagnostic[]): string[] =>
  diagnostics.map((diagnostic) => {
    const line = diagnostic.file?.getLineAndCharacterOfPosition(diagnostic.start ?? 0).line ?? -1;
    return `line ${line + 1}: ${ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n')}`;
  });

const withoutExpectations = (source: string): string => source.replaceAll('@ts-expect-error', 'the mistake:');

describe('the types', () => {
  it('let the right usages compile', () => {
    expect(text(compile('must-pass.ts'))).toEqual([]);
  });

  it('stop every mistake', () => {
    expect(text(compile('must-fail.ts'))).toEqual([]);
  });

  it('say what is wrong in words', () => {
    const lines = text(compile('must-fail.ts', withoutExpectations));
    const messages = lines.join('\n');
    // The actions on jobs, which take an id or a filter, @Job and @Recurring: their overloads are few, and the mistake is named.
    const overloaded =
      /Overload 1 of [2-5], '\((id|filter|tag|expression): |last overload gave .*\s.*(JobFilter|RescheduleWhen|Duration)|: JobDecorator<|No overload expects/;
    expect(lines.filter((line) => line.includes('No overload') && !overloaded.test(line))).toEqual([]);
    expect(messages).toContain('"payload.due is a Date: JSON would change it"');
    expect(messages).toContain('"payload.order.lines[].due is a Date: JSON would change it"');
    expect(messages).toContain('"payload.byId is a Map: JSON would change it"');
    expect(messages).toContain('"payload.price.plus is a function: JSON would change it"');
    expect(messages).toContain("'orderid' does not exist in type");
    expect(messages).toContain(`Type '"10 minutes"' is not assignable to type 'Duration | undefined'`);
    expect(messages).toContain(
      "'stauts' does not exist in type 'JobFilter'. Did you mean to write 'status'?",
    );
    expect(messages).toContain("'tags' does not exist in type 'JobFilter'. Did you mean to write 'tag'?");
    expect(messages).toContain("'timezone' does not exist in type");
    expect(messages).not.toContain('excessively deep');
  });
});
