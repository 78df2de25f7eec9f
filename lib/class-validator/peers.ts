import { createRequire } from 'node:module';
import type * as ClassTransformer from 'class-transformer';
import type * as ClassValidator from 'class-validator';
import { ClassSchemaPackageMissingError } from '../index.js';

export interface Peers {
  readonly transformer: Pick<typeof ClassTransformer, 'plainToInstance'>;
  readonly validator: Pick<typeof ClassValidator, 'validate' | 'getMetadataStorage'>;
}

type Require = (name: string) => unknown;

/**
 * The two optional packages. Both are CommonJS: `require` finds the very copies that the app's `import` finds, which hold
 * what its decorators said; and it is synchronous, so that a missing one is told where the schema is made.
 *
 * @param places - how to look for them: beside this package, then from where the process runs (a linked package).
 * @throws ClassSchemaPackageMissingError
 */
export function loadPeers(
  places: readonly Require[] = [
    createRequire(import.meta.url),
    createRequire(`${process.cwd()}/package.json`),
  ],
): Peers {
  return {
    validator: load(places, 'class-validator') as typeof ClassValidator,
    transformer: load(places, 'class-transformer') as typeof ClassTransformer,
  };
}

function load(places: readonly Require[], name: string): unknown {
  let problem: unknown;
  for (const require of places) {
    try {
      return require(name);
    } catch (error) {
      problem ??= error;
    }
  }
  const { code } = problem as { readonly code?: unknown };
  const words = code === 'MODULE_NOT_FOUND' ? 'is not installed' : 'could not be loaded';
  throw new ClassSchemaPackageMissingError(name, words, problem);
}
