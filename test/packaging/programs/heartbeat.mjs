/** The packed module as a worker node: its heartbeat is a file of its own in the package. */
import { RatchetMonitor } from 'nestjs-ratchet';
import { RatchetHealthIndicator, RatchetHealthModule } from 'nestjs-ratchet/health';
import { boot } from './app.mjs';

const app = await boot(process.argv[2], [RatchetHealthModule]);
const monitor = app.get(RatchetMonitor);
while (monitor.snapshot().heartbeat?.acknowledgedAgeMs === undefined) {
  await new Promise((resolve) => setTimeout(resolve, 20));
}
const [node] = await monitor.nodes();
const health = app.get(RatchetHealthIndicator, { strict: false });
const said = [node.status, health.isLive().ratchet.status, health.isReady('jobs').jobs.status];
await app.close();
console.log(said.join(' '));
