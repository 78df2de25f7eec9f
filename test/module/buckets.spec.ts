import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, type LoggerService } from '@nestjs/common';
import { type TestingModule } from '@nestjs/testing';
import { defineJob, Job, JobScheduler, RatchetBuckets, RatchetModule } from 'nestjs-ratchet';
import { ServedLanes } from '../../lib/intake/served-lanes.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Apps, ended } from './app.js';

const Mail = defineJob('mail.send', { lane: 'mail' });
const Typo = defineJob('mail.typo', { lane: 'mial' });

@Injectable()
class Mails {
  @Job(Mail)
  send(): void {}
}

@Injectable()
class Misspelt {
  @Job(Typo)
  send(): void {}
}

const apps = new Apps();
let database: TestDatabase;
let lines: string[] = [];
const collector: LoggerService = {
  log: (message: unknown) => void lines.push(String(message)),
  warn: (message: unknown) => void lines.push(String(message)),
  error: (message: unknown) => void lines.push(String(message)),
};

beforeAll(async () => {
  database = await createTestDatabase();
});
beforeEach(() => {
  lines = [];
});
afterEach(async () => {
  await apps.closeAll();
  await database.query('truncate ratchet.lane');
});
afterAll(() => database.drop());

/** Resolves when its buckets claim. */
async function worker(options: object = {}): Promise<TestingModule> {
  const ratchet = RatchetModule.forRoot({ connection: database.url, ...options });
  const app = await apps.boot({ imports: [ratchet], providers: [Mails] }, (builder) =>
    builder.setLogger(collector),
  );
  const { id } = await app.get(JobScheduler).enqueue(Mail);
  await ended(app, id);
  return app;
}

async function enqueuer(providers: (typeof Mails | typeof Misspelt)[] = []): Promise<TestingModule> {
  const ratchet = RatchetModule.forRoot({ connection: database.url, worker: false });
  return apps.boot({ imports: [ratchet], providers }, (builder) => builder.setLogger(collector));
}

describe('RatchetBuckets of a process that only enqueues', () => {
  it('ends a bucket of another process, whose node opens a new one at once', async () => {
    const node = await worker({ nodeId: 'w1' });
    const buckets = (await enqueuer()).get(RatchetBuckets);
    const [bucket] = (await buckets.list()).filter(({ lane }) => lane === 'mail');
    expect(bucket).toMatchObject({ node: { id: 'w1' }, status: 'active', begun: 0, buffered: 0 });
    const gone = node
      .get(EngineEvents, { strict: false })
      .next('bucket', (event) => event.bucket === bucket!.id && event.to === 'ready_to_delete');
    expect(await buckets.drainBucket(bucket!.id)).toBe(true);
    await gone;
    const { id } = await node.get(JobScheduler).enqueue(Mail);
    expect(await ended(node, id)).toMatchObject({ status: 'succeeded' });
    const left = (await buckets.list()).filter(({ lane }) => lane === 'mail');
    expect(left).toMatchObject([{ status: 'active' }]);
    expect(left[0]!.id).not.toBe(bucket!.id);
  });

  it('pauses a lane for all nodes, and lets it go on', async () => {
    const node = await worker();
    const app = await enqueuer();
    const buckets = app.get(RatchetBuckets);
    await buckets.pauseLane('mail');
    const { id } = await node.get(JobScheduler).enqueue(Mail);
    // A turn that finds nothing, although the job is there.
    await node.get(EngineEvents, { strict: false }).next('turn', ({ lane }) => lane === 'mail');
    expect(await app.get(JobScheduler).get(id)).toMatchObject({ status: 'pending' });
    await buckets.resumeLane('mail');
    expect(await ended(node, id)).toMatchObject({ status: 'succeeded' });
  });
});

describe('an enqueue', () => {
  it('is refused in a priority that the only node of the lane has switched off', async () => {
    await worker({ nodeId: 'w2', lanes: { mail: { buckets: { lowest: 0 } } } });
    const app = await enqueuer();
    await expect(
      app.get(JobScheduler).enqueue(Mail, undefined, { priority: 'lowest' }),
    ).rejects.toMatchObject({
      code: 'PRIORITY_DISABLED',
      nodes: ['w2'],
    });
    expect((await app.get(RatchetBuckets).lanes()).find(({ name }) => name === 'mail')).toMatchObject({
      disabled: ['lowest'],
      nodes: ['w2'],
      buckets: 4,
    });
  });

  it('into a lane that no node serves is done, and said to be so', async () => {
    await worker();
    const app = await enqueuer();
    await app.get(JobScheduler).enqueue(Mail);
    await app.get(JobScheduler).enqueue(Mail, undefined, { lane: 'mial' });
    await app.get(ServedLanes, { strict: false }).settled();
    const warned = lines.filter((line) => line.includes('which no live node serves'));
    expect(warned).toEqual([
      expect.stringContaining(
        'a job was enqueued into lane "mial", which no live node serves; did you mean "mail"?',
      ),
    ]);
  });
});

describe('the boot of a process that runs no jobs', () => {
  it('says that a definition of it names a lane that no node serves', async () => {
    await worker();
    const app = await enqueuer([Mails, Misspelt]);
    await app.get(ServedLanes, { strict: false }).settled();
    const warned = lines.filter((line) => line.includes('which no live node serves'));
    expect(warned).toEqual([
      expect.stringContaining('the definition of Misspelt.send names lane "mial", which no live node serves'),
    ]);
  });
});
