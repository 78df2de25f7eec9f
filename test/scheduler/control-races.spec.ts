import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { uuidv7 } from 'uuidv7';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type JobScheduler } from '../../lib/scheduler/job-scheduler.js';
import {
  createRatchetDatabase,
  type RatchetDatabase,
  somebodyWaitsForALock,
} from '../intake/ratchet-database.js';

const Note = defineJob('note');

/** What a node's own statement does to the row, held open before its commit. */
const CLAIM = `update ratchet.job set status = 1, claim_seq = claim_seq + 1, bucket = '${uuidv7()}' where id = $1`;
const RETRY = `update ratchet.job set status = case when pause_requested then 2 else 0 end, bucket = null where id = $1`;
const END = `with gone as (delete from ratchet.job where id = $1 returning *)
  insert into ratchet.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, payload, claim_seq,
         ended_at, executions, failures, crashes, tags)
  select id, name, version, lane, priority, 'succeeded', scheduled_at, created_at, payload, claim_seq,
         now(), executions, failures, crashes, tags from gone`;

const BURY = `with gone as (delete from ratchet.job where id = $1 returning *)
  insert into ratchet.dead_letter (id, name, version, lane, priority, outcome, scheduled_at, created_at, payload, claim_seq,
         ended_at, executions, failures, crashes, tags)
  select id, name, version, lane, priority, 'failed', scheduled_at, created_at, payload, claim_seq,
         now(), executions, failures, crashes, tags from gone`;

describe('an action that meets a change under way', () => {
  let app: RatchetDatabase;
  beforeAll(async () => {
    app = await createRatchetDatabase();
    await app.store.ensurePartitions(1);
  });
  afterAll(() => app.close());

  /** The other one has the row first, and commits while the action waits for it. */
  async function after<T>(
    id: string,
    change: string,
    act: (scheduler: JobScheduler) => Promise<T>,
  ): Promise<T> {
    const other = await app.database.connect();
    await other.query('begin');
    await other.query(change, [id]);
    const acting = act(app.scheduler);
    await somebodyWaitsForALock(app.database);
    await other.query('commit');
    return acting;
  }

  it('pause after a claim marks the running job', async () => {
    const { id } = await app.scheduler.enqueue(Note);
    await expect(after(id, CLAIM, (scheduler) => scheduler.pause(id))).resolves.toBe(true);
    expect(await app.scheduler.get(id)).toMatchObject({ status: 'running', pauseRequested: true });
  });

  it('pause after a retry pauses the job', async () => {
    const { id } = await app.scheduler.enqueue(Note);
    await app.database.query(CLAIM, [id]);
    await expect(after(id, RETRY, (scheduler) => scheduler.pause(id))).resolves.toBe(true);
    expect(await app.scheduler.get(id)).toMatchObject({ status: 'paused' });
  });

  it.each(['pause', 'resume', 'cancel'] as const)('%s after the end comes too late', async (action) => {
    const { id } = await app.scheduler.enqueue(Note);
    await app.scheduler.pause(action === 'resume' ? id : uuidv7());
    await expect(after(id, END, (scheduler) => scheduler[action](id))).resolves.toBe(false);
    expect(await app.scheduler.get(id)).toMatchObject({ status: 'succeeded' });
  });

  it.each(['cancel', 'redrive'] as const)(
    '%s of a row that somebody keeps: named, and worth another try, with the session to look for',
    async (action) => {
      const { id } = await app.scheduler.enqueue(Note);
      if (action === 'redrive') await app.database.query(BURY, [id]);
      const table = action === 'redrive' ? 'dead_letter' : 'job';
      const other = await app.database.connect();
      const { rows } = await other.query<{ pid: number }>('select pg_backend_pid() as pid');
      await other.query(`begin; select 1 from ratchet.${table} where id = '${id}' for update`);
      const pid = rows[0]!.pid;
      await expect(app.scheduler[action](id)).rejects.toMatchObject({
        code: 'JOB_ROW_HELD',
        retryable: true,
        action,
        id,
        holder: {
          pid,
          application: 'ratchet-test',
          state: 'idle in transaction',
          openForMs: expect.any(Number),
        },
        message: expect.stringMatching(
          `held by another transaction \\(session ${String(pid)} of "ratchet-test", idle in transaction, open for \\d+ s\\); ` +
            'nothing was changed, try again when it ends',
        ),
        cause: expect.objectContaining({ code: 'STORE_FAULT', sourceCode: '55P03' }),
      });
      await other.query('rollback');
      await app.scheduler[action](id);
      expect(await app.scheduler.get(id)).toMatchObject({
        status: action === 'redrive' ? 'pending' : 'canceled',
      });
    },
  );

  it('reschedule after a claim comes too late', async () => {
    const { id } = await app.scheduler.enqueue(Note);
    const acting = after(id, CLAIM, (scheduler) => scheduler.reschedule(id, { delay: '1h' }));
    await expect(acting).resolves.toBe(false);
    expect(await app.scheduler.get(id)).toMatchObject({ status: 'running' });
  });

  it('resume after a marked job was paused resumes it', async () => {
    const { id } = await app.scheduler.enqueue(Note);
    await app.database.query(CLAIM, [id]);
    await app.scheduler.pause(id);
    const retry = RETRY.replace('bucket = null', 'bucket = null, pause_requested = false');
    await expect(after(id, retry, (scheduler) => scheduler.resume(id))).resolves.toBe(true);
    expect(await app.scheduler.get(id)).toMatchObject({ status: 'pending', pauseRequested: false });
  });

  it('cancel of many waits for the one that is being claimed, and tells its node', async () => {
    const { id } = await app.scheduler.enqueue(Note, undefined, { tags: ['raced'] });
    await app.scheduler.enqueue(Note, undefined, { tags: ['raced'] });
    const signals: unknown[] = [];
    const off = app.messages.onSignal((signal) => signals.push(signal));
    const acting = after(id, CLAIM, (scheduler) => scheduler.cancelByTag('raced'));
    await expect(acting).resolves.toEqual({ matched: 2, changed: 2, aborted: false });
    off();
    expect(signals).toContainEqual({ kind: 'cancel', jobId: id, claimSeq: '1', source: 'test' });
  });

  it('two redrives of one job: one', async () => {
    const { id } = await app.scheduler.enqueue(Note);
    await app.database.query(
      `with gone as (delete from ratchet.job where id = $1 returning *)
       insert into ratchet.dead_letter (id, name, version, lane, priority, scheduled_at, created_at, payload, claim_seq,
              ended_at, executions, failures, crashes, tags, outcome, error)
       select id, name, version, lane, priority, scheduled_at, created_at, payload, claim_seq, now(), 1, 1, 0, tags,
              'failed', 'down' from gone`,
      [id],
    );
    const both = await Promise.all([
      app.scheduler.redrive({ id }),
      app.scheduler.redrive({ id, status: 'failed' }),
    ]);
    expect(both.map(({ changed }) => changed).sort()).toEqual([0, 1]);
    await expect(app.scheduler.redrive(id)).rejects.toMatchObject({ code: 'JOB_NOT_FAILED' });
  });
});
