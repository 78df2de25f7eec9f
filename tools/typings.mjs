/** Which modules the type declarations of an entry need: an optional peer among them would break users without it. */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export async function modulesOf(entry) {
  const seen = new Set();
  const modules = new Set();
  const visit = async (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = await readFile(file, 'utf8');
    for (const [, name] of text.matchAll(/(?:\bfrom|\bimport\(|^import)\s*['"]([^'"]+)['"]/gm)) {
      if (name.startsWith('.')) await visit(join(dirname(file), name.replace(/\.js$/, '.d.ts')));
      else if (!name.startsWith('node:'))
        modules.add(
          name
            .split('/')
            .slice(0, name.startsWith('@') ? 2 : 1)
            .join('/'),
        );
    }
  };
  await visit(entry);
  return [...modules].sort();
}
