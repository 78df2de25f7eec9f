import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const ROOT = join(import.meta.dirname, '..', '..');

/** A fenced block of a page. */
export interface Snippet {
  /** `docs/handlers.md`, for messages. */
  readonly page: string;
  /** Of the first line of code, from 1. */
  readonly line: number;
  readonly language: string;
  /** What follows the language on the fence: `main` starts something when it is loaded, `spec` is a test. */
  readonly mark: string;
  readonly code: string;
  /** The whole file: a comment just before the fence may hold what a reader does not need, with `//snippet` where the code goes. */
  readonly source: string;
  /** Of the first line of code in `source`, from 0. */
  readonly offset: number;
  /** The first line is `// some-file.ts`: the name by which other snippets of the page import it. */
  readonly fileName: string | undefined;
}

/** README and everything in docs/ and its folders. */
export function pages(): string[] {
  const inside = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
  return ['README.md', ...inside.map((name) => `docs/${name.replaceAll('\\', '/')}`)].filter((name) =>
    name.endsWith('.md'),
  );
}

export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

export function snippetsOf(page: string, language: string): Snippet[] {
  const text = readPage(page);
  const fence = /(?:<!-- ts\n([\s\S]*?)-->\n+)?^```(\w+)([^\n]*)\n([\s\S]*?)^```$/gm;
  return [...text.matchAll(fence)]
    .filter((match) => match[2] === language)
    .map((match) => {
      const code = match[4] ?? '';
      const [head = '', tail = ''] = (match[1] ?? '').split(/^ *\/\/snippet\n/m);
      const before = text.slice(0, match.index + match[0].indexOf('```' + language));
      return {
        page,
        line: before.split('\n').length + 1,
        language,
        mark: (match[3] ?? '').trim(),
        code,
        source: `${head}${code}${tail}`,
        offset: head.split('\n').length - 1,
        fileName: /^\/\/ ([\w./-]+\.ts)\n/.exec(code)?.[1],
      };
    });
}

/** A snippet that has been made a file. */
export interface SnippetFile extends Snippet {
  readonly path: string;
}

/** Writes snippets to a folder of the project (where they find its packages), each page's to a folder of its own. */
export function writeSnippets(snippets: readonly Snippet[], name: string): SnippetFile[] {
  const folder = join(ROOT, '.ratchet', name);
  rmSync(folder, { recursive: true, force: true });
  return snippets.map((snippet, index) => {
    const fileName = snippet.fileName ?? `snippet-${index}.ts`;
    const path = join(folder, snippet.page.replace(/[/.]/g, '-'), fileName);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, snippet.source);
    return { ...snippet, path };
  });
}

/** The rows of every table on a page: cells without backticks. */
export function tableRows(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => /^\|(?!\s*-)/.test(line))
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}
