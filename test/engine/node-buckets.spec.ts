import { describe, expect, it } from '@jest/globals';
import { type LaneSettings } from '../../lib/buckets/lane-settings.js';
import { type JobPriority } from '../../lib/jobs/priority.js';
import { deferred, laneOf } from '../support/engine-node.js';
import { pollEvery } from '../support/poll.js';
import { newJob } from '../support/store.js';
import { engineFixture, type Node } from './engine-fixture.js';

const NONE: Record<JobPriority, number> = { lowest: 0, low: 0, normal: 0, high: 0, critical: 0 };
/** So that a beat comes three times a second. */
const heartbeat = { baseMs: 100, graceMs: 900, stallMs: 300_000 };

describe('the buckets of a node', () => {
  const fixture = engineFixture();

  const lanes = (given: Record<string, Partial<LaneSettings>>): ReadonlyMap<string, LaneSettings> =>
    new Map(Object.entries(given).map(([lane, settings]) => [lane, laneOf(settings)]));

  const buckets = (): Promise<Record<string, unknown>[]> =>
    fixture.database.query('select lane, priority, status from ratchet.bucket order by lane, priority');

  it('are opened as planned, and the priorities that are switched off are written down', async () => {
    const one = await fixture.node({
      settings: {
        lanes: lanes({ mail: { buckets: { ...NONE, normal: 2, critical: 1 } }, video: { buckets: 2 } }),
      },
      handlers: { work: () => {} },
    });
    await one.runtime.start();
    expect(await buckets()).toEqual([
      { lane: 'default', priority: null, status: 'active' },
      { lane: 'mail', priority: 2, status: 'active' },
      { lane: 'mail', priority: 2, status: 'active' },
      { lane: 'mail', priority: 4, status: 'active' },
      { lane: 'video', priority: null, status: 'active' },
      { lane: 'video', priority: null, status: 'active' },
    ]);
    expect(await fixture.database.query('select disabled from ratchet.node')).toEqual([
      { disabled: { mail: [0, 1, 3] } },
    ]);
    const snapshot = one.runtime.snapshot();
    expect(snapshot.slots).toBe(10);
    expect(snapshot.lanes.map(({ lane, bucket, slots }) => [lane, bucket, slots])).toEqual([
      ['default', 'active', 10],
      ['mail', 'active', 10],
      ['video', 'active', 10],
    ]);
    expect(snapshot.buckets.map(({ lane, priority, kind }) => [lane, priority, kind])).toEqual([
      ['default', undefined, 'standard'],
      ['mail', 'critical', 'standard'],
      ['mail', 'normal', 'standard'],
      ['mail', 'normal', 'standard'],
      ['video', undefined, 'standard'],
      ['video', undefined, 'standard'],
    ]);
    await one.runtime.close();
    expect(await buckets()).toEqual([]);
  });

  it('claim the priorities that are theirs, and leave alone those that are switched off', async () => {
    const one = await fixture.node({
      settings: { lanes: lanes({ default: { buckets: { ...NONE, normal: 1, high: 2 } } }), ...pollEvery(20) },
      handlers: { work: () => {} },
    });
    const done = one.count('settled', 20);
    const [low] = await one.enqueue({ priority: 1 });
    await one.enqueue(
      ...Array.from({ length: 20 }, (_, n) => ({ priority: n % 2 === 0 ? (2 as const) : (3 as const) })),
    );
    await one.runtime.start();
    await done;
    expect(await one.store.get(low!)).toMatchObject({ status: 'pending', executions: 0 });
  });

  it('share the slots by need: a lane that comes later gets the next one that is free', async () => {
    const holds = Array.from({ length: 10 }, () => deferred());
    let begun = 0;
    const one = await fixture.node({
      settings: { concurrency: 2 },
      handlers: {
        work: () => holds[begun++]!.promise,
        mail: { policy: { lane: 'mail' }, run: () => {} },
      },
    });
    await one.runtime.start();
    const both = one.count('claimed', 2);
    const third = one.count('claimed', 3, ({ lane }) => lane === 'default');
    await one.enqueue(...Array.from({ length: 8 }, () => ({})));
    await both;
    expect(one.runtime.snapshot().lanes.map(({ lane, running }) => [lane, running])).toEqual([
      ['default', 2],
      ['mail', 0],
    ]);
    const mailed = one.count('settled', 3, ({ lane }) => lane === 'mail');
    await one.enqueue(...Array.from({ length: 3 }, () => ({ name: 'mail', lane: 'mail' })));
    const ended = one.count('settled', 1, ({ lane }) => lane === 'default');
    holds[0]!.resolve();
    await ended;
    await mailed;
    // Nobody waits beside it any more: all slots are lent again.
    await third;
    for (const { resolve } of holds) resolve();
  });

  it('leave alone what is reserved for another lane, and take no more than their own lane may', async () => {
    const hold = deferred();
    const one = await fixture.node({
      settings: { concurrency: 4, lanes: lanes({ mail: { concurrency: 2, reserved: 1 } }) },
      handlers: {
        work: () => hold.promise,
        mail: { policy: { lane: 'mail' }, run: () => hold.promise },
      },
    });
    await one.runtime.start();
    const three = one.count('claimed', 3);
    await one.enqueue(...Array.from({ length: 6 }, () => ({})));
    await three;
    const mail = one.count('claimed', 1, ({ lane }) => lane === 'mail');
    await one.enqueue(...Array.from({ length: 3 }, () => ({ name: 'mail', lane: 'mail' })));
    await mail;
    expect(one.runtime.snapshot().lanes.map(({ lane, running, slots }) => [lane, running, slots])).toEqual([
      ['default', 3, 4],
      ['mail', 1, 2],
    ]);
    hold.resolve();
  });

  it('of an idle lane look for work by themselves while another lane has all slots', async () => {
    const hold = deferred();
    const one = await fixture.node({
      settings: { concurrency: 1, ...pollEvery(30) },
      handlers: { work: () => hold.promise, mail: { policy: { lane: 'mail' }, run: () => {} } },
    });
    await one.runtime.start();
    const waits = one.count('pace', 1, ({ lane, state }) => lane === 'mail' && state === 'saturated');
    const begun = one.count('claimed', 1);
    await one.enqueue({});
    await begun;
    // No wakeup tells of it, and there is no room when the bucket looks.
    const mailed = one.count('settled', 1, ({ lane }) => lane === 'mail');
    await one.store.insert([newJob({ name: 'mail', lane: 'mail' })]);
    await waits;
    hold.resolve();
    await mailed;
  });

  it('begin what they have claimed ahead as soon as there is room, although another lane takes the slots in between', async () => {
    const hold = deferred();
    const one = await fixture.node({
      settings: { concurrency: 1, lanes: lanes({ mail: { bufferSize: 10 } }) },
      handlers: { work: () => {}, mail: { policy: { lane: 'mail' }, run: () => hold.promise } },
    });
    await one.runtime.start();
    const claimed = one.count('turn', 1, (turn) => turn.lane === 'mail' && turn.claimed === 5);
    await one.enqueue(...Array.from({ length: 5 }, () => ({ name: 'mail', lane: 'mail' })));
    await claimed;
    await one.enqueue({}, {}, {});
    const settled = one.count('settled', 8);
    hold.resolve();
    await settled;
  });

  describe('when answers of the database are lost', () => {
    const lost = { kind: 'unknown', when: 'after' } as const;

    it('are opened once', async () => {
      const one = await fixture.node({ handlers: { work: () => {} } });
      const struck = one.faults.fail('openBucket', lost);
      await one.runtime.start();
      await struck;
      const done = one.count('settled', 1);
      await one.enqueue({});
      await done;
      expect(await buckets()).toEqual([{ lane: 'default', priority: null, status: 'active' }]);
    });

    it('are opened once also when somebody drains the node meanwhile', async () => {
      const one = await fixture.node({ settings: { heartbeat }, handlers: { work: () => {} } });
      const gone = one.count('bucket', 1, ({ to }) => to === 'ready_to_delete');
      const struck = one.faults.fail('openBucket', lost);
      const started = one.runtime.start();
      await struck;
      await fixture.database.query('update ratchet.node set cordoned_at = now()');
      await fixture.database.query(`update ratchet.bucket set status = 'completing'`);
      await started;
      await gone;
      expect(await buckets()).toEqual([]);
    });

    it('are removed, each step', async () => {
      const one = await fixture.node({ settings: { ...pollEvery(20) }, handlers: { work: () => {} } });
      await one.runtime.start();
      const struck = one.faults.fail('setBucketStatus', lost, lost, lost);
      const gone = one.count('bucket', 1, ({ to }) => to === 'ready_to_delete');
      await fixture.database.query(`update ratchet.bucket set status = 'completing'`);
      await struck;
      await gone;
      expect(await buckets()).toEqual([{ lane: 'default', priority: null, status: 'active' }]);
    });
  });

  it('leave cleanly although their node was drained by hand and has not heard of it', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    await one.runtime.start();
    await one.events.next('idle');
    await fixture.database.query('update ratchet.node set cordoned_at = now()');
    await fixture.database.query(`update ratchet.bucket set status = 'completing'`);
    const steps: string[] = [];
    one.events.on('bucket', ({ from, to }) => steps.push(`${from} ${to}`));
    await one.runtime.close();
    expect(steps).toHaveLength(4);
    expect(await buckets()).toEqual([]);
    expect(fixture.logs.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  });

  describe('drained by hand', () => {
    it('finishes what runs and is removed, while a new one claims', async () => {
      const hold = deferred();
      const one = await fixture.node({
        settings: { ...pollEvery(20) },
        handlers: { work: () => hold.promise, quick: () => {} },
      });
      await one.runtime.start();
      const begun = one.count('claimed', 1);
      const [id] = await one.enqueue({});
      await begun;
      await fixture.database.query(`update ratchet.bucket set status = 'completing'`);
      const quick = one.count('settled', 1);
      await one.enqueue({ name: 'quick' });
      await quick;
      const shown = one.runtime.snapshot().buckets.map(({ status, running }) => [status, running]);
      expect(shown).toEqual([
        ['completing', 1],
        ['active', 0],
      ]);
      const steps: string[] = [];
      one.events.on('bucket', ({ from, to }) => steps.push(`${from} ${to}`));
      const gone = one.count('bucket', 1, ({ to }) => to === 'ready_to_delete');
      hold.resolve();
      await gone;
      expect(steps).toEqual([
        'completing ready_to_drain',
        'ready_to_drain draining',
        'draining ready_to_delete',
      ]);
      expect(await one.store.get(id!)).toMatchObject({ status: 'succeeded' });
      expect(await buckets()).toEqual([{ lane: 'default', priority: null, status: 'active' }]);
      expect(
        fixture.logs.filter(({ line }) => line.includes('was drained by hand; it finishes')),
      ).toHaveLength(1);
    });

    it('is removed although the database fails for a moment', async () => {
      const one = await fixture.node({ settings: { ...pollEvery(20) }, handlers: { work: () => {} } });
      await one.runtime.start();
      const struck = one.faults.fail('setBucketStatus', { kind: 'unavailable', when: 'before' });
      const gone = one.count('bucket', 1, ({ to }) => to === 'ready_to_delete');
      await fixture.database.query(`update ratchet.bucket set status = 'completing'`);
      await struck;
      await gone;
      const opened = await buckets();
      expect(opened).toEqual([{ lane: 'default', priority: null, status: 'active' }]);
    });

    it('what the database refuses to record is given back, and the bucket is removed all the same', async () => {
      const one = await fixture.node({ settings: { ...pollEvery(20) }, handlers: { work: () => {} } });
      await one.runtime.start();
      const { database } = fixture;
      await database.query('alter table ratchet.job_history add constraint refused check (false) not valid');
      await database.query('alter table ratchet.dead_letter add constraint refused check (false) not valid');
      try {
        const parked = one.count('fault', 3, ({ kind }) => kind === 'bad_row');
        const [id] = await one.enqueue({});
        await parked;
        // Else the next bucket would claim it again.
        await database.query(
          "insert into ratchet.lane (name, paused_at) values ('default', now()) on conflict (name) do update set paused_at = now()",
        );
        const gone = one.count('bucket', 1, ({ to }) => to === 'ready_to_delete');
        await database.query(`update ratchet.bucket set status = 'completing'`);
        await gone;
        expect(await one.store.get(id!)).toMatchObject({ status: 'pending' });
        expect(await one.store.executions(id!)).toMatchObject([{ outcome: 'released' }]);
      } finally {
        await database.query('alter table ratchet.job_history drop constraint refused');
        await database.query('alter table ratchet.dead_letter drop constraint refused');
        await database.query('delete from ratchet.lane');
      }
      await one.runtime.close();
      expect(await buckets()).toEqual([]);
    });

    it('and then taken away, it is followed by one bucket only', async () => {
      const hold = deferred();
      const one = await fixture.node({
        settings: { heartbeat, ...pollEvery(20) },
        handlers: { work: () => hold.promise },
      });
      await one.runtime.start();
      const begun = one.count('claimed', 1);
      await one.enqueue({});
      await begun;
      const followed = fixture.database.query(`update ratchet.bucket set status = 'completing'`);
      const more = one.count('claimed', 1);
      await followed;
      await one.enqueue({});
      await more;
      const deposed = one.count('deposed', 1);
      await fixture.database.query(
        `update ratchet.bucket set status = 'lost', epoch = epoch + 1 where status = 'completing'`,
      );
      hold.resolve();
      await deposed;
      await one.count('beat', 1);
      expect(
        await fixture.database.query(`select 1 from ratchet.bucket where status = 'active'`),
      ).toHaveLength(1);
    });
  });

  describe('while the node is drained by hand', () => {
    async function cordon(one: Node, yes: boolean): Promise<void> {
      await fixture.database.query(
        `update ratchet.node set cordoned_at = ${yes ? 'now()' : 'null'} where id = $1`,
        [one.id],
      );
    }

    const takeAll = (): Promise<unknown> =>
      fixture.database.query(`update ratchet.bucket set status = 'lost', epoch = epoch + 1`);

    const told = (part: string): number => fixture.logs.filter(({ line }) => line.includes(part)).length;

    it('there is none, with one line; afterwards there are all of them', async () => {
      const one = await fixture.node({
        settings: { heartbeat, lanes: lanes({ mail: { buckets: 3 } }), ...pollEvery(20) },
        handlers: { work: () => {} },
      });
      await one.runtime.start();
      await cordon(one, true);
      const deposed = one.count('deposed', 4);
      await takeAll();
      await deposed;
      await one.count('beat', 3);
      expect(await fixture.database.query(`select 1 from ratchet.bucket where status = 'active'`)).toEqual(
        [],
      );
      expect(told('was drained by hand: it opens no bucket')).toBe(1);
      expect(one.runtime.snapshot().lanes.map(({ bucket }) => bucket)).toEqual([undefined, undefined]);
      const done = one.count('settled', 1);
      await one.enqueue({});
      await cordon(one, false);
      await done;
      expect(told('it opens buckets again')).toBe(1);
      await one.runtime.close();
      expect(await buckets()).toEqual([]);
    });

    it('a wakeup makes it ask at once whether it still is', async () => {
      const seldom = { baseMs: 60_000, graceMs: 180_000, stallMs: 300_000 };
      const one = await fixture.node({ settings: { heartbeat: seldom }, handlers: { work: () => {} } });
      one.debug.at('start.registered', () => cordon(one, true));
      await one.runtime.start();
      expect(told('was drained by hand: it opens no bucket')).toBe(1);
      const beat = one.count('beat', 1);
      one.messages.newWork('default', 2);
      await beat;
      expect(await buckets()).toEqual([]);
      await cordon(one, false);
      const done = one.count('settled', 1);
      await one.enqueue({});
      await done;
    });

    it('it stays so when it registers again, because others declared it dead', async () => {
      const one = await fixture.node({
        settings: { heartbeat, ...pollEvery(20) },
        handlers: { work: () => {} },
      });
      await one.runtime.start();
      await cordon(one, true);
      await one.count('beat', 2);
      const again = one.count('registered', 1);
      await fixture.database.query('delete from ratchet.node');
      await again;
      await one.count('beat', 2);
      expect(
        await fixture.database.query('select cordoned_at is not null as cordoned from ratchet.node'),
      ).toEqual([{ cordoned: true }]);
      expect(told('was drained by hand: it opens no bucket')).toBe(1);
    });

    it('a boot does not wait for it, and a shutdown neither', async () => {
      const one = await fixture.node({ settings: { heartbeat }, handlers: { work: () => {} } });
      one.debug.at('start.registered', () => cordon(one, true));
      await one.runtime.start();
      expect(one.runtime.state).toBe('running');
      await one.runtime.close();
      expect(await fixture.database.query('select 1 from ratchet.node')).toEqual([]);
    });
  });
});
