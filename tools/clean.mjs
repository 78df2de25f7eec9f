/** Removes the folders named on the command line, on every platform. */
import { rm } from 'node:fs/promises';

for (const folder of process.argv.slice(2)) await rm(folder, { recursive: true, force: true });
