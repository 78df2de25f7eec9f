/** Starts again on the same data and says what became of a job, and of the one that it enqueued. */
import { boot, ended, Jobs } from './app.mjs';

const [, , dataDir, id] = process.argv;
const app = await boot(dataDir);
const { status, result } = await ended(id);
const executions = await Jobs.scheduler.executions(id);
await app.close();
console.log(`${status} ${result} [${executions.map(({ outcome }) => outcome).join(', ')}]`);
