import { afterEach, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { ratchetEvents } from '../../lib/ratchet.events.js';
import { captureLogs } from '../support/engine-node.js';
import { FakeClock } from '../support/fake-clock.js';

afterEach(() => {
  Logger.overrideLogger(false);
});

it('a listener that fails for every job writes a line a second for each event, with the number of those left out', () => {
  const logs = captureLogs();
  const engine = new EngineEvents();
  const clock = new FakeClock();
  const events = ratchetEvents(engine, clock);
  const fail = (): never => {
    throw new Error('the metrics server is gone');
  };
  events.on('job.canceled', fail);
  events.on('job.enqueued', fail);
  const cancel = (): void => engine.emit('withdrawn', { jobId: 'j', running: false });
  for (let n = 0; n < 500; n += 1) cancel();
  engine.emit('enqueued', { jobId: 'j', name: 'work', lane: 'default', priority: 'high' });
  clock.advance(1_000);
  cancel();
  clock.advance(1_000);
  cancel();
  const line = (event: string, left: string): string =>
    `a listener of '${event}' failed, which changes nothing else${left}: the metrics server is gone`;
  expect(logs.map((log) => log.line)).toEqual([
    line('job.canceled', ''),
    line('job.enqueued', ''),
    line('job.canceled', ' (and 499 times since the line before)'),
    line('job.canceled', ''),
  ]);
});
