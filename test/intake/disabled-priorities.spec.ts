import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { uuidv7 } from 'uuidv7';
import { type PriorityDisabledError } from '../../lib/errors/bucket-errors.js';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type NodeRef } from '../../lib/store/job-store.js';
import { createRatchetDatabase, type RatchetDatabase } from './ratchet-database.js';

const Mail = defineJob<{ n: number }>('mail.send', { lane: 'mail' });

/** What the callers of an enqueue are told when the nodes of a lane have switched a priority off. */
describe('an enqueue into a priority that is switched off', () => {
  let app: RatchetDatabase;
  let node: NodeRef;

  const register = (disabled: (0 | 1)[]): Promise<NodeRef> =>
    app.store.registerNode({
      id: `n-${uuidv7()}`,
      host: 'test',
      pid: 1,
      version: '0',
      lanes: ['mail'],
      handlers: [],
      disabled: { mail: disabled },
    });

  beforeAll(async () => {
    app = await createRatchetDatabase();
    node = await register([0, 1]);
  });
  beforeEach(async () => {
    await app.database.query('truncate ratchet.job, ratchet.job_payload, ratchet.idempotency_key');
    app.wakeups.length = 0;
  });
  afterAll(() => app.close());

  const stored = async (): Promise<number[]> =>
    (await app.database.query<{ n: number }>(`select (payload ->> 'n')::int as n from ratchet.job`))
      .map(({ n }) => n)
      .sort((a, b) => a - b);
  const refusal = (): object => ({
    code: 'PRIORITY_DISABLED',
    retryable: false,
    what: 'mail.send',
    lane: 'mail',
    priority: 'lowest',
    nodes: [node.id],
    message:
      `PRIORITY_DISABLED: "mail.send": priority "lowest" of lane "mail" is switched off by 1 node, all that serve it (${node.id}); ` +
      'give the job another priority or lane, or give the priority a bucket (option "buckets" of the lane, not 0) on one of them',
  });

  it('is refused by name: job, lane, priority, nodes, and the mend', async () => {
    for (const options of [
      {},
      { businessKey: 'b' },
      { idempotencyKey: 'i' },
      { businessKey: 'b', idempotencyKey: 'i' },
    ]) {
      await expect(
        app.scheduler.enqueue(Mail, { n: 1 }, { ...options, priority: 'lowest' }),
      ).rejects.toMatchObject(refusal());
    }
    await expect(
      app.scheduler.enqueueMany(Mail, [{ payload: { n: 1 } }, { payload: { n: 2 } }], { priority: 'lowest' }),
    ).rejects.toMatchObject(refusal());
    expect(await stored()).toEqual([]);
    expect(app.wakeups).toEqual([]);
  });

  it('fails its own caller alone, of all that are saved by one insert', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 200 }, (_, n) =>
        app.scheduler.enqueue(Mail, { n }, { priority: n % 50 === 7 ? 'lowest' : 'normal' }),
      ),
    );
    const refused = outcomes.flatMap((outcome, n) =>
      outcome.status === 'rejected' ? [[n, (outcome.reason as PriorityDisabledError).code]] : [],
    );
    expect(refused).toEqual([7, 57, 107, 157].map((n) => [n, 'PRIORITY_DISABLED']));
    expect(await stored()).toEqual(Array.from({ length: 200 }, (_, n) => n).filter((n) => n % 50 !== 7));
    expect(app.wakeups).toEqual([{ lane: 'mail', priority: 2, source: 'test' }]);
  });

  it('leaves the transaction that it was made in usable', async () => {
    await app.source.transaction(async (transaction) => {
      await expect(
        app.scheduler.enqueue(Mail, { n: 1 }, { priority: 'lowest', transaction }),
      ).rejects.toMatchObject(refusal());
      await app.scheduler.enqueue(Mail, { n: 2 }, { transaction });
      await expect(
        app.scheduler.enqueueMany(Mail, [{ payload: { n: 3 } }], { priority: 'lowest', transaction }),
      ).rejects.toMatchObject(refusal());
      await app.scheduler.enqueue(Mail, { n: 4 }, { transaction, businessKey: 'k' });
    });
    expect(await stored()).toEqual([2, 4]);
  });

  it('tells a buffered call by its promise `saved`, and the others of the buffer nothing', async () => {
    const handles = await Promise.all(
      [0, 1, 2].map((n) =>
        app.scheduler.enqueue(
          Mail,
          { n },
          { durability: 'buffered', priority: n === 1 ? 'lowest' : 'normal' },
        ),
      ),
    );
    const saved = await Promise.allSettled(handles.map((handle) => handle.saved));
    expect(saved.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((saved[1] as PromiseRejectedResult).reason).toMatchObject(refusal());
    expect(await stored()).toEqual([0, 2]);
  });

  it('is taken once a node serves the priority, and refused again when that one has left', async () => {
    const other = await register([1]);
    await app.scheduler.enqueue(Mail, { n: 1 }, { priority: 'lowest' });
    await expect(app.scheduler.enqueue(Mail, { n: 2 }, { priority: 'low' })).rejects.toMatchObject({
      priority: 'low',
      nodes: [node.id, other.id].sort(),
    });
    await app.store.removeNode(other);
    await expect(app.scheduler.enqueue(Mail, { n: 3 }, { priority: 'lowest' })).rejects.toMatchObject(
      refusal(),
    );
    expect(await stored()).toEqual([1]);
  });
});
