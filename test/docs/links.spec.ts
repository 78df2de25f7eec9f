import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { pages, readPage, ROOT } from './markdown.js';

/** Pages on which a link to a test is called what the test is. */
const TEST_NAMING = ['README.md', 'docs/recurring/contract.md'];

interface Link {
  readonly text: string;
  /** From the root of the project. */
  readonly file: string;
  readonly anchor: string;
}

function linksOf(page: string): Link[] {
  return [...readPage(page).matchAll(/\[([^\]]+)\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)/g)].map(
    ([, text = '', target = '', anchor = '']) => ({
      text,
      file: target === '' ? page : relative(ROOT, join(ROOT, dirname(page), target)),
      anchor,
    }),
  );
}

/** As GitHub makes them of headings. */
function anchorsOf(page: string): string[] {
  return [...readPage(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

const all = [...pages(), 'CONTRIBUTING.md', 'CHANGELOG.md', 'sample/README.md'].flatMap((page) =>
  linksOf(page).map((link) => ({ page, ...link })),
);

describe('links of README and docs', () => {
  it('lead somewhere', () => {
    const dead = all.filter(
      ({ file, anchor }) =>
        !existsSync(join(ROOT, file)) || (anchor !== '' && !anchorsOf(file).includes(anchor)),
    );
    expect(dead).toEqual([]);
  });

  it('to tests name a test that is there', () => {
    const named = all.filter(
      ({ page, file }) => TEST_NAMING.includes(page) && /\.spec\.ts$|-contract\.ts$/.test(file),
    );
    expect(named.length).toBeGreaterThan(8);
    const missing = named.filter(({ file, text }) => {
      const source = existsSync(join(ROOT, file)) ? readFileSync(join(ROOT, file), 'utf8') : '';
      return !source.replaceAll("\\'", "'").includes(`'${text}'`) && !source.includes(`"${text}"`);
    });
    expect(missing).toEqual([]);
  });
});
