import { randomBytes } from 'node:crypto';
import { open, readFile, rm, stat, utimes } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../errors/describe-error.js';

const REFRESH_MS = 1_000;
/** A holder refreshes its lock every second: one this old was left behind. No pids are compared, containers reuse them. */
const STALE_MS = 10_000;
const LOOK_EVERY_MS = 50;

/** One process at a time sets up, starts or stops the server of a folder. */
export async function withLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const mark = randomBytes(8).toString('hex');
  while (!(await take(file, mark))) await sleep(LOOK_EVERY_MS);
  const refresh = setInterval(() => {
    const now = new Date();
    utimes(file, now, now).catch(() => undefined);
  }, REFRESH_MS);
  try {
    return await work();
  } finally {
    clearInterval(refresh);
    if ((await readFile(file, 'utf8').catch(() => '')) === mark) await rm(file, { force: true });
  }
}

async function take(file: string, mark: string): Promise<boolean> {
  try {
    const handle = await open(file, 'wx');
    await handle.writeFile(mark);
    await handle.close();
    return true;
  } catch (error) {
    if (describeError(error).code !== 'EEXIST') throw error;
  }
  const found = await stat(file).catch(() => undefined);
  if (found && Date.now() - found.mtimeMs > STALE_MS) await rm(file, { force: true });
  return false;
}
