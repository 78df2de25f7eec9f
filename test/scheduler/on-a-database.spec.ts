import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { uuidv7 } from 'uuidv7';
import { defineJob } from '../../lib/jobs/define-job.js';
import { createRatchetDatabase, type RatchetDatabase } from '../intake/ratchet-database.js';

const Note = defineJob<{ text: string }>('note', { lane: 'notes', priority: 'high', maxRetries: 2 });

describe('JobScheduler on a database', () => {
  let app: RatchetDatabase;
  beforeAll(async () => {
    app = await createRatchetDatabase();
  });
  afterAll(() => app.close());

  it('tells what it was given', async () => {
    const runAt = new Date('2098-05-06T07:08:09.123Z');
    const { id } = await app.scheduler.enqueue(
      Note,
      { text: 'äöü 😀' },
      { runAt, tags: ['a', 'b'], metadata: { tenant: 1 }, businessKey: 'told', maxRetries: 9 },
    );
    expect(await app.scheduler.get(id)).toMatchObject({
      id,
      name: 'note',
      status: 'pending',
      lane: 'notes',
      priority: 'high',
      payload: { text: 'äöü 😀' },
      scheduledAt: runAt,
      tags: ['a', 'b'],
      metadata: { tenant: 1 },
      businessKey: 'told',
      maxRetries: 9,
      executions: 0,
    });
    expect(await app.scheduler.executions(id)).toEqual([]);
    expect(await app.scheduler.get(uuidv7())).toBeUndefined();
  });

  it('cancels a waiting job, once, and frees its key', async () => {
    const { id } = await app.scheduler.enqueue(Note, { text: 'x' }, { businessKey: 'c', delay: '1h' });
    await expect(app.scheduler.cancel(id)).resolves.toBe(true);
    await expect(app.scheduler.cancel(id)).resolves.toBe(false);
    await expect(app.scheduler.cancel(uuidv7())).resolves.toBe(false);
    expect((await app.scheduler.get(id))?.status).toBe('canceled');
    await expect(app.scheduler.enqueue(Note, { text: 'y' }, { businessKey: 'c' })).resolves.toMatchObject({
      created: true,
    });
  });

  it('tells this process of the cancel of a running job', async () => {
    const { id } = await app.scheduler.enqueue(Note, { text: 'x' });
    await app.database.query('update ratchet.job set status = 1, claim_seq = 3, bucket = $2 where id = $1', [
      id,
      uuidv7(),
    ]);
    const signals: unknown[] = [];
    const off = app.messages.onSignal((signal) => signals.push(signal));
    await expect(app.scheduler.cancel(id)).resolves.toBe(true);
    off();
    expect(signals).toEqual([{ kind: 'cancel', jobId: id, claimSeq: '3', source: 'test' }]);
    expect((await app.scheduler.get(id))?.status).toBe('canceled');
  });

  it('saves none of many when two of them have one key', async () => {
    const items = ['a', 'b', 'b'].map((text) => ({
      payload: { text },
      options: { businessKey: `twice-${text}` },
    }));
    for (const onConflict of ['reject', 'replace'] as const) {
      const many = items.map(({ payload, options }) => ({ payload, options: { ...options, onConflict } }));
      await expect(app.scheduler.enqueueMany(Note, many)).rejects.toMatchObject({
        code: 'BUSINESS_KEY_HELD',
        holder: undefined,
        items: [1, 2],
      });
    }
    await expect(
      app.scheduler.enqueue(Note, { text: 'a' }, { businessKey: 'twice-a' }),
    ).resolves.toMatchObject({ created: true });
  });

  it('refuses to redrive what is not in the dead letter', async () => {
    const { id } = await app.scheduler.enqueue(Note, { text: 'x' });
    await expect(app.scheduler.redrive(id)).rejects.toMatchObject({
      code: 'JOB_NOT_FAILED',
      status: 'pending',
    });
    await expect(app.scheduler.redrive(uuidv7())).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
  });

  it('cancels the superseded holder of a key and tells by whom', async () => {
    const first = await app.scheduler.enqueue(Note, { text: '1' }, { businessKey: 's' });
    const second = await app.scheduler.enqueue(
      Note,
      { text: '2' },
      { businessKey: 's', onConflict: 'replace' },
    );
    expect(await app.scheduler.get(first.id)).toMatchObject({
      status: 'canceled',
      error: `superseded by ${second.id}`,
    });
    await app.database.query('update ratchet.job set status = 1, claim_seq = 1, bucket = $2 where id = $1', [
      second.id,
      uuidv7(),
    ]);
    await expect(
      app.scheduler.enqueue(Note, { text: '3' }, { businessKey: 's', onConflict: 'replace' }),
    ).rejects.toMatchObject({ code: 'BUSINESS_KEY_HELD', holder: second.id, running: true });
  });
});
