/** Tells its parent when the slow job has begun, then goes on until a signal ends it. */
import { boot, Jobs, Slow } from './app.mjs';

const [, , dataDir, slowMs] = process.argv;
Jobs.slowMs = Number(slowMs);
const app = await boot(dataDir);
app.enableShutdownHooks();
const { id } = await Jobs.scheduler.enqueue(Slow);
process.send(id);
