import { fileURLToPath } from 'node:url';
import { PackageLoadedTwiceError } from './errors/boot-errors.js';

const REGISTRY = Symbol.for('nestjs-ratchet:copies');

const processWide = globalThis as unknown as Record<symbol, Set<string> | undefined>;
const copies = (processWide[REGISTRY] ??= new Set());
copies.add(fileURLToPath(new URL('..', import.meta.url)));

/**
 * Two copies of the package have different classes, so `JobScheduler` of one is no token of the other and Nest would
 * only say that it cannot be resolved.
 *
 * @throws PackageLoadedTwiceError naming the folders.
 */
export function refuseSecondCopy(): void {
  if (copies.size > 1) throw new PackageLoadedTwiceError([...copies]);
}
