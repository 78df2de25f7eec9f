import { describe, expect, it } from '@jest/globals';
import { type Edit, FleetStore } from '../buckets/fleet-store.js';
import { type Mutation } from '../support/compile.mjs';
import { registerTestNode } from '../support/store.js';
import { begun, ChaosFixture, SOON, until } from './chaos-fixture.js';
import { type Finding } from './history-checker.js';
import { type WorkerEvent } from './worker-process.js';

/**
 * Negative controls: each scenario is judged good with the library as it is, and bad when the one thing is taken out of it that
 * makes it so. The interleaving is forced. If a control is not found out, the chaos suite proves nothing any more.
 */
const FENCE: Mutation = {
  file: 'exchange/settle-part.ts',
  from: /j\.claim_seq = s\.seq and j\.status is not distinct from 1 and j\.bucket is not distinct from @bucket::uuid/g,
  to: 'j.status is not distinct from 1',
};
const SHARE_LOCK: Mutation = { file: 'exchange/exchange.ts', from: /\n +for share of b\n/g, to: '\n' };
/** So that the exchange still waits when the other node, however slow it is to start, has noticed. */
const PATIENT: Mutation = {
  file: 'pinned-settings.ts',
  from: "lock_timeout: '5s'",
  to: "lock_timeout: '20s'",
};
const GRACE: readonly Mutation[] = [
  {
    file: 'postgres/rescue.ts',
    from: '[this.session.offsetMs, graceMs, node.id]',
    to: '[this.session.offsetMs, 0, node.id]',
  },
  // Nor is that of the node itself.
  { file: 'statements/rescue.ts', from: 'greatest($2::float8, n.grace_ms)', to: '$2::float8' },
  { file: 'heartbeat/heartbeat.ts', from: /if \(lost\)/g, to: 'if (true)' },
];
/** What was claimed ahead begins without a mark that outlives its process. */
const START_MARKS: Mutation = {
  file: 'engine/bucket-turns.ts',
  from: 'begin: begin.map(({ id, claimSeq }) => ({ id, claimSeq })),',
  to: 'begin: [],',
};
/** Whoever takes back the jobs of a dead process charges for all of them. */
const GREEDY: Edit = {
  from: 'coalesce(h.begun_at, m.begun_at) as begun_at',
  to: 'coalesce(h.begun_at, m.begun_at, now()) as begun_at',
};
/** A node that does not hear of its death: so nothing but the fence stands between it and the job of its heir. */
const DEAF: readonly Mutation[] = [
  { file: 'engine/membership.ts', from: '(dead) => this.#declaredDead(dead)', to: '() => {}' },
  { file: 'engine/exchange-loop.ts', from: /if \(!answer\.owned\)/g, to: 'if (false)' },
];

const rules = (findings: readonly Finding[]): string[] => [...new Set(findings.map(({ rule }) => rule))];

describe('a node that wakes up after its death, and ends a job that its heir is running', () => {
  describe('as it is', () => {
    const chaos = new ChaosFixture('control-deaf', DEAF);
    it('is refused', async () => {
      const { id, heir, frozen } = await lateFinish(chaos);
      await until(async () => {
        const rows = await chaos.database.query('select from ratchet.execution where late_at is not null');
        return rows.length === 1;
      });
      expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'running' });
      await chaos.go(id, heir.pid);
      await chaos.ended([id]);
      expect(frozen.alive).toBe(true);
      expect(await chaos.judge([id])).toEqual([]);
    }, 60_000);
  });

  describe('without the fence', () => {
    const chaos = new ChaosFixture('control-fence', [...DEAF, FENCE]);
    it('is recorded, and the checker finds it out', async () => {
      const { id } = await lateFinish(chaos);
      await chaos.ended([id]);
      expect(rules(await chaos.judge([id]))).toEqual(
        expect.arrayContaining([
          'a recorded success finished its body',
          'a recorded result is that of the recorded claim',
        ]),
      );
    }, 60_000);
  });
});

describe('an exchange that is under way while the bucket is taken from its node', () => {
  describe('as it is', () => {
    const chaos = new ChaosFixture('control-none', [PATIENT]);
    it('is waited for', async () => {
      const { id, open } = await claimUnderWay(chaos, 2);
      await open();
      await chaos.go(id);
      await chaos.ended([id]);
      expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'succeeded', crashes: 1 });
      expect(await chaos.judge([id])).toEqual([]);
    }, 60_000);
  });

  describe('without the share lock of the bucket', () => {
    const chaos = new ChaosFixture('control-share-lock', [PATIENT, SHARE_LOCK]);
    it('claims into a bucket that is gone, and the checker finds it out', async () => {
      const { id, open } = await claimUnderWay(chaos, 1);
      await until(async () => {
        const rows = await chaos.database.query('select from ratchet.bucket where node_id = $1', ['a']);
        return rows.length === 0;
      });
      await open();
      await until(async () => (await chaos.scheduler.get(id))?.status === 'running');
      expect(rules(await chaos.judge([id]))).toContain('nothing is claimed into a bucket that is gone');
    }, 60_000);
  });
});

describe('a process that is killed while it runs a job that it had claimed ahead', () => {
  describe('as it is', () => {
    const chaos = new ChaosFixture('control-ahead');
    it('is charged for that one, and not for those that waited', async () => {
      const { all, begun, waiting } = await killedAhead(chaos);
      chaos.start(AHEAD, 'a');
      await chaos.ended(all);
      expect(await chaos.judge(all, { slots: 1 })).toEqual([]);
      expect(await chaos.scheduler.get(begun)).toMatchObject({ crashes: 1, executions: 2 });
      for (const id of waiting) {
        expect(await chaos.scheduler.get(id)).toMatchObject({ crashes: 0, executions: 1 });
      }
    }, 60_000);

    it('when those that waited are charged too, the checker finds it out', async () => {
      const { all } = await killedAhead(chaos);
      await takeBack(chaos, GREEDY);
      expect(rules(await chaos.judge(all, { slots: 1 }))).toContain(
        'what only waited in a buffer is not charged',
      );
    }, 60_000);
  });

  describe('without start marks', () => {
    const chaos = new ChaosFixture('control-start-marks', [START_MARKS]);
    it('is not charged, and the checker finds it out', async () => {
      const { all } = await killedAhead(chaos);
      await takeBack(chaos);
      expect(rules(await chaos.judge(all, { slots: 1 }))).toEqual(
        expect.arrayContaining([
          'every execution has a record',
          'what ran in a process that was killed is charged',
        ]),
      );
    }, 60_000);
  });
});

describe('when the grace is ignored', () => {
  const chaos = new ChaosFixture('control-grace', GRACE);
  it('living nodes lose their jobs, and the checker finds it out', async () => {
    const { id } = await chaos.scheduler.enqueueNamed('chaos.hold', {});
    const alive = chaos.start(SOON, 'a');
    await alive.until(begun(id));
    chaos.start(SOON, 'b');
    await until(async () => {
      const rows = await chaos.database.query(`select from ratchet.execution where outcome = 'crashed'`);
      return rows.length > 0;
    });
    expect(rules(await chaos.judge([id]))).toContain(
      'a claim is taken back from a node that was silent for the grace, or replaced',
    );
  }, 60_000);
});

const AHEAD = { ...SOON, concurrency: 1, lanes: { default: { bufferSize: 10 } } };

/** Its second job has begun, by a start mark, and others wait. */
async function killedAhead(chaos: ChaosFixture) {
  const all = await chaos.enqueue('chaos.hold', {}, 5);
  const node = chaos.start(AHEAD, 'a');
  const { job } = await node.until((event) => event.event === 'begin');
  await until(async () => {
    const rows = await chaos.database.query('select from ratchet.job where status = 1');
    return rows.length === all.length;
  });
  await chaos.go(job!);
  const second = (await node.until(begunOther(job!))).job!;
  node.kill();
  await node.exited;
  for (const id of all) await chaos.go(id);
  return { all, begun: second, waiting: all.filter((id) => id !== job && id !== second) };
}

/** As a new process of the node does first of all. */
async function takeBack(chaos: ChaosFixture, ...edits: Edit[]): Promise<void> {
  const fleet = await FleetStore.open(chaos.database.url, edits);
  await fleet.store.rescueOwn(await registerTestNode(fleet.store, 'a'), 3);
  await fleet.close();
  expect([...fleet.used]).toEqual(edits);
}

const begunOther =
  (job: string) =>
  (event: WorkerEvent): boolean =>
    event.event === 'begin' && event.job !== job;

async function lateFinish(chaos: ChaosFixture) {
  const { id } = await chaos.scheduler.enqueueNamed('chaos.hold', {});
  const frozen = chaos.start(SOON, 'a');
  await frozen.until(begun(id));
  frozen.kill('SIGSTOP');
  const heir = chaos.start(SOON, 'b');
  await heir.until(begun(id));
  await chaos.go(id, frozen.pid);
  frozen.kill('SIGCONT');
  return { id, frozen, heir };
}

/** The claim of node `a` stands still in the database, the process is frozen, and `b` has begun to take its bucket. */
async function claimUnderWay(chaos: ChaosFixture, waiting: number) {
  const { database } = chaos;
  const gate = await database.connect();
  await gate.query('select pg_advisory_lock(4711)');
  await database.query(`
    create function side_gate() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock_shared(4711); return new; end $$;
    create trigger side_gate before update on ratchet.job for each row when (old.status = 0 and new.status = 1)
      execute function side_gate()`);
  const { id } = await chaos.scheduler.enqueueNamed('chaos.hold', {});
  const frozen = chaos.start(SOON, 'a');
  await waits(chaos, 1);
  frozen.kill('SIGSTOP');
  chaos.start(SOON, 'b');
  await waits(chaos, waiting);
  return { id, open: () => gate.query('select pg_advisory_unlock(4711)') };
}

/** So many sessions wait for locks of others. */
async function waits(chaos: ChaosFixture, count: number): Promise<void> {
  await until(async () => {
    const [row] = await chaos.database.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return row!.n >= count;
  });
}
