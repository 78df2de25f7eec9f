/** The packed module by `import`: boots, runs a job, ends by itself. */
import { boot, ended, Jobs, Slow } from './app.mjs';

const app = await boot(process.argv[2]);
const { id } = await Jobs.scheduler.enqueue(Slow);
const { status, result } = await ended(id);
await app.close();
console.log(`${status} ${result}`);
