import { expect, it } from '@jest/globals';
import { begun, ChaosFixture } from './chaos-fixture.js';
import { pollOption } from '../support/poll.js';

/**
 * The negative control of the fence: the same scenario as in one-node.spec.ts, with a library whose settle does not compare
 * `claim_seq` (nor the bucket, its second fence). The frozen process then ends a job that its heir is still running. If this
 * spec fails, the scenario proves nothing any more.
 */
const chaos = new ChaosFixture('fence-removed', [
  {
    file: 'exchange/settle-part.ts',
    from: /j\.claim_seq = s\.seq and j\.status is not distinct from 1 and j\.bucket is not distinct from @bucket::uuid/g,
    to: 'j.status is not distinct from 1',
  },
]);

it('without the fence a late finisher ends the job of its heir', async () => {
  const { id } = await chaos.scheduler.enqueueNamed('chaos.hold', {});
  // It polls once in an hour and beats seldom: nothing tells it that it lost before it speaks for the job.
  const frozen = chaos.start({ poll: pollOption('1h'), heartbeat: { interval: '10m', grace: '1h' } });
  await frozen.until(begun(id));
  frozen.kill('SIGSTOP');
  const heir = chaos.start();
  await heir.until(begun(id));
  frozen.kill('SIGCONT');
  await chaos.go(id, frozen.pid);
  await chaos.ended([id]);
  expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'succeeded', result: { pid: frozen.pid } });
}, 60_000);
