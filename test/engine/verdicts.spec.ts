import { describe, expect, it } from '@jest/globals';
import { type EndedWork } from '../../lib/engine/execution-events.js';
import { type LateRecorder } from '../../lib/engine/late-recorder.js';
import { Outbox } from '../../lib/engine/outbox.js';
import { Verdicts } from '../../lib/engine/verdicts.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type BucketRef, type ClaimedJob } from '../../lib/store/job-store.js';

const bucket: BucketRef = { id: 'b', epoch: 1, lane: 'default', node: { id: 'n', epoch: '1' } };
const job = {
  id: 'a',
  claimSeq: '1',
  name: 'work',
  lane: 'default',
  executions: 1,
  begun: false,
} as ClaimedJob;

/** What follows from the answer that the claim of a finished `work` is lost. */
function lost(outcome: 'released' | 'succeeded', work: EndedWork) {
  const events = new EngineEvents();
  const told: string[] = [];
  events.on('lost', ({ jobId }) => told.push(jobId));
  events.on('settled', ({ jobId }) => told.push(`settled ${jobId}`));
  const outbox = new Outbox();
  outbox.add({ id: 'a', claimSeq: '1', outcome }, work);
  const late: unknown[] = [];
  const recorder = {
    record: (given: unknown) => void late.push(given),
  } as Partial<LateRecorder> as LateRecorder;
  const verdicts = new Verdicts(bucket, outbox, recorder, events);
  const { behind, dueNow } = verdicts.apply(outbox.all(), () => 'lost');
  expect(outbox.size).toBe(0);
  return { behind, dueNow, told, late: late.length };
}

describe('Verdicts', () => {
  it('take a claim that was given back before it began, and of which nothing tells, for given back', () => {
    const answer = lost('released', { job, tookMs: undefined });
    expect(answer).toEqual({ behind: true, dueNow: true, told: [], late: 0 });
  });

  it('call any other lost that is: one whose handler ran, and one whose start the database knows', () => {
    const gone = { behind: false, dueNow: false, told: ['a'] };
    expect(lost('released', { job, tookMs: undefined, beganMs: 1 })).toEqual({ ...gone, late: 0 });
    expect(lost('released', { job: { ...job, begun: true }, tookMs: undefined })).toEqual({
      ...gone,
      late: 0,
    });
    expect(lost('succeeded', { job, tookMs: 1, beganMs: 1 })).toEqual({ ...gone, late: 1 });
  });
});
