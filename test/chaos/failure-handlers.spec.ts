import { expect, it } from '@jest/globals';
import { ChaosFixture } from './chaos-fixture.js';

/** The dead letter and the job of the failure handler come together, whatever happens to the process afterwards. */
const chaos = new ChaosFixture('failure-handlers');

it('a process that dies right after its job is in the dead letter: the failure handler is called, once', async () => {
  const first = chaos.start();
  await first.ready();
  const { id } = await chaos.scheduler.enqueueNamed('chaos.doomed', { kill: true });
  expect(await first.exited).toMatchObject({ signal: 'SIGKILL' });
  expect(first.events.filter(({ event }) => event === 'failed')).toEqual([]);
  expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'failed', failures: 1 });
  const pending = await chaos.database.query<{ id: string }>(
    `select id, parent_id, executions from ratchet.jobs where name = 'chaos.doomed#failed'`,
  );
  expect(pending).toMatchObject([{ parent_id: id }]);
  // Another node: nobody has come back under the first one's name.
  const second = chaos.start({}, 'node-b');
  const told = await second.until(({ event }) => event === 'failed');
  expect(told).toMatchObject({ job: id, reason: 'true' });
  await chaos.ended([pending[0]!.id]);
  expect(await chaos.scheduler.get(pending[0]!.id)).toMatchObject({ status: 'succeeded', failures: 0 });
  expect(await chaos.database.query('select count(*)::int as n from side')).toEqual([{ n: 2 }]);
}, 60_000);
