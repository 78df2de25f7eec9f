import { readFileSync } from 'node:fs';

/** Of this package, for the node's row and the boot line. `unknown` in a bundle, which has no package.json of ours. */
export const PACKAGE_VERSION = read();

function read(): string {
  try {
    const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
    const { name, version } = JSON.parse(text) as { name?: string; version?: string };
    return (name === 'nestjs-ratchet' && version) || 'unknown';
  } catch {
    return 'unknown';
  }
}
