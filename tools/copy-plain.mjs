/** Copies the plain JavaScript of lib/ (what runs in worker threads) to where the compiler has put the rest. */
import { cp, mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const [from, to] = process.argv.slice(2);
const plain = (await readdir(from, { recursive: true })).filter((file) => file.endsWith('.mjs'));
for (const file of plain) {
  await mkdir(dirname(join(to, file)), { recursive: true });
  await cp(join(from, file), join(to, file));
}
