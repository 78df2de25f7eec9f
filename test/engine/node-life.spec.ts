import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { SystemClock } from '../../lib/cluster/clock.js';
import { type StoreFaultKind } from '../../lib/store/store-fault.js';
import { deferred } from '../support/engine-node.js';
import { newJob, registerTestNode, turn } from '../support/store.js';
import { engineFixture, type Node } from './engine-fixture.js';
import { pollEvery } from '../support/poll.js';

/** Real time, except that the waits after a fault, which are no whole milliseconds because of their jitter, are short. */
class EagerClock extends SystemClock {
  override timer(ms: number, callback: () => void, background?: boolean): () => void {
    return super.timer(Number.isInteger(ms) ? ms : ms / 50, callback, background);
  }
}

const LANES = ['default', 'mail'];
const KINDS: StoreFaultKind[] = ['unavailable', 'unknown', 'rolled_back', 'fatal'];

describe('the life of a node', () => {
  const fixture = engineFixture();
  let ids = 0;

  function node(nodeId: string, mail: () => unknown = () => {}): Promise<Node> {
    return fixture.node({
      nodeId,
      settings: { ...pollEvery(40) },
      parts: { clock: new EagerClock() },
      handlers: { work: () => {}, mail: { policy: { lane: 'mail' }, run: mail } },
    });
  }

  /** Both lanes run jobs. */
  async function works(one: Node): Promise<void> {
    const ended = new Set<string>();
    const off = one.events.on('settled', ({ jobId, outcome }) => {
      if (outcome === 'succeeded') ended.add(jobId);
    });
    const settled = one.count('settled', 2);
    const inserted = await one.enqueue({}, { name: 'mail', lane: 'mail' });
    await settled;
    off();
    expect(ended).toEqual(new Set(inserted));
  }

  /** As another node does that takes buckets over: they are lost first, then emptied, then gone. Returns their ids. */
  async function takeBuckets(lanes: readonly string[]): Promise<string[]> {
    const lost = await fixture.database.query(
      `update ratchet.bucket set status = 'lost', epoch = epoch + 1 where lane = any ($1) and status = 'active' returning id`,
      [lanes],
    );
    await fixture.database.query(
      `update ratchet.job j set status = 0, bucket = null, begun_at = null, claim_seq = claim_seq + 1
         from ratchet.bucket b where b.id = j.bucket and b.status = 'lost' and j.status = 1`,
    );
    await fixture.database.query(`delete from ratchet.bucket where status = 'lost'`);
    return lost.map(({ id }) => id as string);
  }

  /** Another process registers the id, and does no more. */
  async function takeId(id: string): Promise<void> {
    await fixture.database.query(
      `update ratchet.node set epoch = nextval('ratchet.node_epoch'), host = 'elsewhere', pid = 4711, process = 'another' where id = $1`,
      [id],
    );
  }

  /** Another process registers the id and rescues what it finds. Returns the buckets that it takes. */
  async function takeOver(other: Node, id: string): Promise<string[]> {
    const registration = { host: 'elsewhere', pid: 1, version: '0', lanes: [], handlers: [] };
    const epoch = await other.real.registerNode({ id, ...registration });
    // From here on no bucket is opened under the id but by the other process.
    const theirs = await fixture.database.query('select id from ratchet.bucket where node_id = $1', [id]);
    await other.real.rescueOwn(epoch, 100);
    return theirs.map((row) => row['id'] as string);
  }

  function active(): Promise<Record<string, unknown>[]> {
    return fixture.database.query(
      `select b.lane, b.node_id from ratchet.bucket b where b.status = 'active' order by b.lane`,
    );
  }

  it('says at its start what an earlier process of its id had only claimed ahead', async () => {
    const name = `n${(ids += 1)}`;
    const one = await node(name);
    const earlier = await registerTestNode(one.real, name);
    const bucket = await one.real.openBucket(earlier, 'elsewhere');
    await one.real.insert([newJob({ lane: 'elsewhere' }), newJob({ lane: 'elsewhere' })]);
    const ahead = { beginNow: 0, begin: [], mark: 0, forget: [] };
    expect((await one.real.exchange(turn(bucket, { want: 2, ahead }))).claimed).toHaveLength(2);
    const rescued = one.events.next('rescued');
    await one.runtime.start();
    expect(await rescued).toMatchObject({ recovered: 0, failed: 0, unbegun: 2 });
    expect(fixture.logs.map(({ line }) => line)).toContainEqual(
      expect.stringMatching(/stopped without a drain: 0 jobs to run again, .*; 2 jobs that had not begun/),
    );
  });

  it('three processes that start at once under one id all serve: one keeps it, the others say whose it is', async () => {
    const all = await Promise.all(
      ['a', 'b', 'c'].map((own) => fixture.node({ nodeId: 'triplet', handlers: { [own]: () => {} } })),
    );
    let registered = 0;
    const everyone = deferred();
    for (const one of all) {
      one.debug.at('start.registered', () => {
        registered += 1;
        if (registered === 3) everyone.resolve();
        return everyone.promise;
      });
    }
    await Promise.all(all.map((one) => one.runtime.start()));
    expect(all.map(({ runtime }) => runtime.state)).toEqual(['running', 'running', 'running']);
    const names = (await fixture.database.query('select id from ratchet.node')).map(({ id }) => id as string);
    expect(names.filter((name) => /^triplet~[0-9a-f]{8}$/.test(name))).toHaveLength(2);
    expect(names).toContain('triplet');
    const lines = (): typeof fixture.logs =>
      fixture.logs.filter(({ line }) => line.includes('another process registered as node'));
    // Who it is may have to be asked first.
    while (lines().length < 2) await new Promise((resolve) => setImmediate(resolve));
    const said = lines();
    expect(said).toHaveLength(2);
    expect(said[0]?.line).toContain(`pid ${process.pid})`);
    expect((await active()).map(({ node_id }) => node_id).sort()).toEqual(names.sort());
    const settled = all.map((one) => one.events.next('settled'));
    for (const [at, one] of all.entries()) await one.enqueue({ name: ['a', 'b', 'c'][at]! });
    await Promise.all(settled);
    await Promise.all(all.map((one) => one.runtime.close()));
    expect(await fixture.database.query('select 1 from ratchet.bucket')).toEqual([]);
    expect(await fixture.database.query('select 1 from ratchet.node')).toEqual([]);
  });

  it('a boot that was let through goes on, whatever the next statements say, and says what a person must mend', async () => {
    for (const method of ['registerNode', 'rescueOwn', 'openBucket'] as const) {
      for (const kind of [...KINDS, 'bad_row'] as const) {
        fixture.logs.length = 0;
        const one = await node(`boot-${(ids += 1)}`);
        void one.faults.fail('registerNode', { kind: 'unavailable', when: 'before' });
        void one.faults.fail(method, { kind, when: 'before' }, { kind, when: 'after' });
        const opened = one.events.next('idle');
        await one.runtime.start();
        await opened;
        await works(one);
        expect(one.runtime.state).toBe('running');
        const errors = fixture.logs.filter(({ level }) => level === 'error');
        if (kind === 'fatal') expect(errors[0]?.line).toMatch(/made by a test.*trying again/);
        await one.runtime.close();
        expect(await fixture.database.query('select 1 from ratchet.bucket')).toEqual([]);
        expect(await fixture.database.query('select 1 from ratchet.node')).toEqual([]);
      }
    }
  });

  it('a bucket that was taken away is replaced, whatever the database says to the new one', async () => {
    const one = await node('replaces');
    await one.runtime.start();
    await works(one);
    for (const kind of KINDS) {
      void one.faults.fail('openBucket', { kind, when: 'before' }, { kind, when: 'after' });
      await takeBuckets(LANES);
      await works(one);
    }
    await one.runtime.close();
    expect(await active()).toEqual([]);
  });

  it('an id that was taken is given up once, with all that was claimed under it, which runs again', async () => {
    const name = (at: number): string => `renames-${at}`;
    for (const method of ['registerNode', 'openBucket'] as const) {
      for (const kind of KINDS) {
        const id = name((ids += 1));
        const hold = deferred();
        const one = await node(id, () => hold.promise);
        await one.runtime.start();
        const begun = one.events.next('claimed');
        const [held] = await one.enqueue({ name: 'mail', lane: 'mail' });
        await begun;
        const registered: string[] = [];
        one.events.on('registered', (event) => registered.push(event.node));
        const deposed: string[] = [];
        one.events.on('deposed', ({ lane }) => deposed.push(lane));
        void one.faults.fail(method, { kind, when: 'before' }, { kind, when: 'after' });
        await takeId(id);
        await takeBuckets(['default']);
        const settled = one.events.next('settled');
        await one.enqueue({});
        await settled;
        const ended = one.events.next('settled', ({ jobId }) => jobId === held);
        hold.resolve();
        expect(await ended).toMatchObject({ jobId: held, outcome: 'succeeded' });
        expect(registered).toEqual([expect.stringMatching(new RegExp(`^${id}~[0-9a-f]{8}$`))]);
        expect(new Set(deposed)).toEqual(new Set(LANES));
        expect(fixture.logs.some(({ line }) => line.includes('(host elsewhere, pid 4711)'))).toBe(true);
        fixture.logs.length = 0;
        await works(one);
        await one.runtime.close();
        expect(await fixture.database.query('select 1 from ratchet.bucket')).toEqual([]);
        expect(await fixture.database.query('select id from ratchet.node')).toEqual([{ id }]);
        await fixture.database.query('truncate ratchet.node');
      }
    }
  });

  it('frozen while another process came and took over: all its buckets are told, it goes on beside the other', async () => {
    const first = await node('frozen');
    await first.runtime.start();
    await works(first);
    const deposed = first.count('deposed', 2);
    const renamed = first.events.next('registered');
    const second = await node('frozen');
    await second.runtime.start();
    await deposed;
    expect((await renamed).node).toMatch(/^frozen~/);
    await second.runtime.close();
    await works(first);
  });

  it('a bucket that comes while the node leaves is given back', async () => {
    const one = await node('leaves');
    const opening = deferred();
    const goOn = deferred();
    const open = one.real.openBucket.bind(one.real);
    one.real.openBucket = async (...given) => {
      opening.resolve();
      await goOn.promise;
      return open(...given);
    };
    const started = one.runtime.start();
    await opening.promise;
    const closed = one.runtime.close();
    goOn.resolve();
    await Promise.all([started, closed]);
    expect(await fixture.database.query('select 1 from ratchet.bucket')).toEqual([]);
    expect(await fixture.database.query('select 1 from ratchet.node')).toEqual([]);
  });

  const fault = fc.record({
    what: fc.constant('fault' as const),
    method: fc.constantFrom(
      'registerNode' as const,
      'openBucket' as const,
      'exchange' as const,
      'reconcile' as const,
    ),
    kind: fc.constantFrom(...KINDS),
    when: fc.constantFrom('before' as const, 'after' as const),
  });
  const happening = fc.oneof(
    fault,
    fc.record({ what: fc.constant('take buckets' as const), lanes: fc.subarray(LANES, { minLength: 1 }) }),
    fc.record({ what: fc.constant('take id' as const) }),
    fc.record({ what: fc.constant('take over' as const) }),
    fc.record({ what: fc.constant('enqueue' as const), lane: fc.constantFrom(...LANES) }),
  );

  it('whatever happens to it: every job runs, only what was taken is deposed, nothing is left behind', async () => {
    const other = await node('other');
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { minLength: 1, maxLength: 12 }), async (happenings) => {
        const id = `any-${(ids += 1)}`;
        const one = await node(id);
        const ended = new Set<string>();
        one.events.on('settled', ({ jobId, outcome }) => {
          if (outcome === 'succeeded') ended.add(jobId);
        });
        const deposed: string[] = [];
        one.events.on('deposed', ({ bucket }) => deposed.push(bucket));
        const taken: string[] = [];
        /** Without its id everything that it holds is somebody else's. */
        let idTaken = false;
        const jobs: string[] = [];
        await one.runtime.start();
        try {
          for (const event of happenings) {
            switch (event.what) {
              case 'fault':
                // A lost reply is the only fault after which the statement was carried out.
                void one.faults.fail(event.method, {
                  kind: event.when === 'after' ? 'unknown' : event.kind,
                  when: event.when,
                });
                break;
              case 'take buckets':
                taken.push(...(await takeBuckets(event.lanes)));
                break;
              case 'take id':
                await takeId(id);
                idTaken = true;
                break;
              case 'take over':
                taken.push(...(await takeOver(other, id)));
                break;
              case 'enqueue': {
                const job = newJob({ name: event.lane === 'mail' ? 'mail' : 'work', lane: event.lane });
                await other.real.insert([job]);
                jobs.push(job.id);
              }
            }
          }
          const last = await one.enqueue({}, { name: 'mail', lane: 'mail' });
          while (![...jobs, ...last].every((job) => ended.has(job))) await one.events.next('settled');
        } finally {
          await one.runtime.close();
        }
        if (!idTaken) expect(taken).toEqual(expect.arrayContaining(deposed));
        expect(await fixture.database.query('select 1 from ratchet.bucket')).toEqual([]);
        expect(await fixture.database.query('select 1 from ratchet.job')).toEqual([]);
        expect(await fixture.database.query(`select id from ratchet.node where host <> 'elsewhere'`)).toEqual(
          [],
        );
      }),
      { numRuns: 25 },
    );
  }, 120_000);
});
