/** Packs the built package, as `npm publish` would. */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export const ROOT = new URL('..', import.meta.url).pathname;
export const run = promisify(execFile);

/** The path of the tarball, made in `folder`. */
export async function pack(folder) {
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: ROOT });
  const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz'));
  if (!tarball) throw new Error(`npm pack left no tarball in ${folder}`);
  return join(folder, tarball);
}

/** Notes what is wrong and goes on; `finish` tells. */
export class Checks {
  #failed = 0;

  equal(what, found, expected) {
    const fits = expected instanceof RegExp ? expected.test(found) : found === expected;
    console.log(
      `${fits ? 'ok    ' : 'FAILED'} ${what}${fits ? '' : `\n  expected ${expected}\n  found    ${found}`}`,
    );
    if (!fits) this.#failed += 1;
  }

  finish() {
    if (this.#failed > 0) process.exitCode = 1;
  }
}
