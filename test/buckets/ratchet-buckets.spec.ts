import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { uuidv7 } from 'uuidv7';
import { RatchetBuckets } from '../../lib/buckets/ratchet-buckets.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type BucketStore } from '../../lib/store/bucket-store.js';
import { type NodeRef } from '../../lib/store/job-store.js';
import { PostgresBucketStore } from '../../lib/store/postgres/postgres-bucket-store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { StoreError } from '../../lib/store/store-fault.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob } from '../support/store.js';

let database: TestDatabase;
let jobs: PostgresJobStore;
let store: BucketStore;
let lines: { level: string; line: string }[];
let woken: [lane: string, behind: boolean | undefined][];
let moved: { bucket: string; from: string; to: string }[];
let buckets: RatchetBuckets;

beforeAll(async () => {
  database = await createTestDatabase();
  jobs = createStore(database.url);
  await jobs.open();
  store = new PostgresBucketStore(jobs);
});
beforeEach(() => {
  lines = [];
  const at =
    (level: string) =>
    (line: unknown): void =>
      void lines.push({ level, line: String(line) });
  Logger.overrideLogger({ log: at('log'), warn: at('warn'), error: at('error') });
  woken = [];
  moved = [];
  const events = new EngineEvents();
  events.on('bucket', ({ bucket, from, to }) => void moved.push({ bucket, from, to }));
  const messages = {
    newWork: (lane: string, _priority: number, hint?: { behind?: boolean }) =>
      woken.push([lane, hint?.behind]),
  };
  buckets = new RatchetBuckets({ store, messages, events });
});
afterEach(() => void Logger.overrideLogger(false));
afterAll(async () => {
  await jobs.close();
  await database.drop();
});

const drainedOf = async (id: string): Promise<Date | undefined> =>
  (await jobs.nodes()).find((one) => one.id === id)?.drainedAt;

const node = (
  lanes: readonly string[],
  disabled: Record<string, (0 | 1 | 2 | 3 | 4)[]> = {},
): Promise<NodeRef> =>
  jobs.registerNode({
    id: `n-${uuidv7()}`,
    host: 'test',
    pid: 1,
    version: '0',
    lanes,
    handlers: [],
    disabled,
  });

describe('RatchetBuckets', () => {
  it('pauses and resumes a lane, wakes its nodes, and writes a line of each', async () => {
    await node(['mail']);
    expect(await buckets.pauseLane('mail')).toBe(true);
    expect(await buckets.pauseLane('mail')).toBe(false);
    expect((await buckets.lanes()).find(({ name }) => name === 'mail')).toMatchObject({
      pausedAt: expect.any(Date),
    });
    expect(await buckets.resumeLane('mail')).toBe(true);
    expect(await buckets.resumeLane('mail')).toBe(false);
    expect(woken).toEqual(Array(4).fill(['mail', true]));
    expect(lines.map(({ level, line }) => `${level}: ${line}`)).toEqual([
      'log: lane "mail" is paused: no node claims of it',
      'log: lane "mail" was paused already',
      'log: lane "mail" goes on',
      'log: lane "mail" was not paused',
    ]);
  });

  it('does what it is asked with a lane that nobody serves, and says which was meant', async () => {
    await node(['mail']);
    expect(await buckets.pauseLane('mial')).toBe(true);
    expect(lines).toContainEqual({ level: 'warn', line: 'no node serves lane "mial"; did you mean "mail"?' });
  });

  it('drains a bucket, with an event, a line and a wakeup', async () => {
    const lane = `lane-${uuidv7()}`;
    const owner = await node([lane]);
    const { id } = await jobs.openBucket(owner, lane, 3);
    expect((await buckets.list()).find((bucket) => bucket.id === id)).toMatchObject({
      priority: 'high',
      begun: 0,
    });
    expect(await buckets.drainBucket(id)).toBe(true);
    expect(moved).toEqual([{ bucket: id, from: 'active', to: 'completing' }]);
    expect(woken).toEqual([[lane, true]]);
    expect(lines.map(({ line }) => line)).toEqual([
      `bucket ${id} of lane "${lane}" on node "${owner.id}" claims nothing more and ends`,
    ]);
    expect(await buckets.drainBucket(id)).toBe(false);
    expect(lines.at(-1)?.line).toBe(`bucket ${id} is on its way out already`);
    expect(moved.length).toBe(1);
  });

  it('drains a lane: paused, and every bucket of it ends', async () => {
    const lane = `lane-${uuidv7()}`;
    const owner = await node([lane]);
    await jobs.openBucket(owner, lane);
    await jobs.openBucket(owner, lane, 0);
    expect(await buckets.drainLane(lane)).toBe(2);
    expect((await buckets.list()).filter((bucket) => bucket.lane === lane)).toMatchObject([
      { status: 'completing', lanePaused: true },
      { status: 'completing', lanePaused: true },
    ]);
    expect(moved.length).toBe(2);
    expect(lines.map(({ line }) => line)).toEqual([
      `lane "${lane}" is paused, and 2 active buckets of it end`,
    ]);
  });

  it('drains a node, and lets it serve again', async () => {
    const [lane, other] = [`lane-${uuidv7()}`, `lane-${uuidv7()}`];
    const owner = await node([lane, other]);
    const bucket = await jobs.openBucket(owner, lane);
    expect(await buckets.drainNode(owner.id)).toBe(1);
    expect((await drainedOf(owner.id)) instanceof Date).toBe(true);
    expect(moved).toEqual([{ bucket: bucket.id, from: 'active', to: 'completing' }]);
    expect(new Set(woken.map(([name]) => name))).toEqual(new Set([lane, other]));
    expect(await buckets.drainNode(owner.id)).toBe(0);
    expect(await buckets.undrainNode(owner.id)).toBe(true);
    expect(await drainedOf(owner.id)).toBe(undefined);
    expect(await buckets.undrainNode(owner.id)).toBe(false);
    expect(lines.map(({ line }) => line)).toEqual([
      `node "${owner.id}" is drained: it opens no bucket; 1 active bucket of it ends`,
      `node "${owner.id}" was drained already; 0 active buckets of it end`,
      `node "${owner.id}" opens buckets again`,
      `node "${owner.id}" was not drained`,
    ]);
  });

  it('names the bucket or node that is not there', async () => {
    for (const id of [uuidv7(), 'nothing', '']) {
      await expect(buckets.drainBucket(id)).rejects.toMatchObject({
        code: 'BUCKET_NOT_FOUND',
        message: expect.stringContaining(`"${id}"`),
      });
      await expect(buckets.drainNode(id)).rejects.toMatchObject({
        code: 'NODE_NOT_FOUND',
        message: expect.stringContaining(`drainNode: "${id}"`),
      });
      await expect(buckets.undrainNode(id)).rejects.toMatchObject({ code: 'NODE_NOT_FOUND', node: id });
    }
    await expect(buckets.drainNode('a\0b')).rejects.toMatchObject({ code: 'NODE_NOT_FOUND' });
  });

  it('moves the jobs of a lane, all of them, and wakes the target', async () => {
    const [from, to] = [`lane-${uuidv7()}`, `lane-${uuidv7()}`];
    await node([to]);
    await jobs.insert(Array.from({ length: 2_500 }, () => newJob({ lane: from })));
    await jobs.insert([newJob({ lane: from, priority: 0 })]);
    expect(await buckets.moveLane(from, to, { priority: 'normal' })).toBe(2_500);
    expect(await jobs.count({ lanes: [to] })).toBe(2_500);
    expect(woken).toEqual(Array(3).fill([to, true]));
    expect(await buckets.moveLane(from, to)).toBe(1);
    expect(lines.map(({ line }) => line)).toEqual([
      `2500 jobs of priority "normal" moved from lane "${from}" to lane "${to}"`,
      `1 job moved from lane "${from}" to lane "${to}"`,
    ]);
  });

  it('does not move into a priority that is switched off', async () => {
    const [from, to] = [`lane-${uuidv7()}`, `lane-${uuidv7()}`];
    const { id } = await node([to], { [to]: [0] });
    await jobs.insert([newJob({ lane: from, priority: 0 })]);
    await expect(buckets.moveLane(from, to)).rejects.toMatchObject({
      code: 'PRIORITY_DISABLED',
      message: `PRIORITY_DISABLED: "moveLane": priority "lowest" of lane "${to}" is switched off by 1 node, all that serve it (${id}); give the job another priority or lane, or give the priority a bucket (option "buckets" of the lane, not 0) on one of them`,
    });
    expect(await jobs.count({ lanes: [from] })).toBe(1);
  });

  it('says what is moved when the database fails half-way', async () => {
    const cause = new StoreError('unavailable', 'STORE_FAULT: gone', '57P01');
    let steps = 0;
    const failing = Object.assign(Object.create(store) as BucketStore, {
      moveObstacles: () => Promise.resolve([]),
      move: () =>
        (steps += 1) === 1 ? Promise.resolve({ moved: 1_000, more: true }) : Promise.reject(cause),
    });
    const broken = new RatchetBuckets({
      store: failing,
      messages: { newWork: () => undefined },
      events: new EngineEvents(),
    });
    await expect(broken.moveLane('a', 'b')).rejects.toMatchObject({
      code: 'BULK_INTERRUPTED',
      changed: 1_000,
      cause,
    });
    steps = 1;
    await expect(broken.moveLane('a', 'b')).rejects.toBe(cause);
  });

  it.each([
    ['a name that is none', () => buckets.pauseLane(''), 'pauseLane: lane: "" is wrong'],
    ['a name that cannot be stored', () => buckets.resumeLane('a\0'), 'resumeLane: lane'],
    ['a name that is too long', () => buckets.drainLane('x'.repeat(101)), 'drainLane: lane'],
    [
      'one lane for two',
      () => buckets.moveLane('a', 'a'),
      'moveLane: to: "a" is wrong; allowed: another lane',
    ],
    ['a bad source', () => buckets.moveLane(7 as unknown as string, 'b'), 'moveLane: from: 7 is wrong'],
    [
      'a bad priority',
      () => buckets.moveLane('a', 'b', { priority: 'urgent' as 'high' }),
      'moveLane: options.priority: "urgent" is wrong; allowed: lowest, low, normal, high, critical',
    ],
    [
      'an unknown option',
      () => buckets.moveLane('a', 'b', { priorty: 'low' } as object),
      'moveLane: options.priorty: there is no such key; did you mean priority?',
    ],
  ])('refuses %s', async (_what, call, message) => {
    await expect(call()).rejects.toMatchObject({
      code: 'INVALID_BUCKET_ARGUMENT',
      message: expect.stringContaining(`INVALID_BUCKET_ARGUMENT: ${message}`),
    });
    expect(woken).toEqual([]);
  });
});
