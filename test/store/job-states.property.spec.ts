import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, turn } from '../support/store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import {
  type JobStatus,
  type JobTransition,
  LIVE_STATUSES,
  statusAfter,
  TERMINAL_STATUSES,
  TRANSITIONS,
} from '../../lib/jobs/job-status.js';
import {
  type BucketRef,
  type ControlAction,
  type JobQuery,
  type Settlement,
} from '../../lib/store/job-store.js';

/**
 * Whatever is asked in whatever order, of one job or of many: a job moves only as the table of transitions says (to paused where a pause was asked for), is always in exactly one place, its claim_seq never falls, and each claim has
 * at most one recorded outcome. Settles are sent for any claim that was ever made, so most of them are late.
 */
let database: TestDatabase;
let store: PostgresJobStore;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  await store.open();
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

const OUTCOMES = ['succeeded', 'failed', 'retried', 'snoozed', 'released'] as const;

type Step =
  | {
      readonly do: 'insert';
      readonly key: number | undefined;
      readonly onConflict: 'reject' | 'return' | 'replace';
    }
  | { readonly do: 'claim'; readonly node: number; readonly want: number }
  | {
      readonly do: 'settle';
      readonly picks: readonly { claim: number; outcome: (typeof OUTCOMES)[number]; drop: boolean }[];
    }
  | { readonly do: 'cancel' | 'redrive'; readonly job: number }
  | {
      readonly do: 'bulk';
      readonly kind: ControlAction['kind'];
      /** Of the jobs, in the order in which they were made; none is every job. */
      readonly jobs: readonly number[] | undefined;
      readonly statuses: readonly JobStatus[] | undefined;
    }
  | { readonly do: 'restart'; readonly node: number }
  | { readonly do: 'reconcile'; readonly node: number };

const index = fc.nat(30);
const node = fc.nat(1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('insert' as const),
      key: fc.option(fc.nat(2), { nil: undefined }),
      onConflict: fc.constantFrom('reject' as const, 'return' as const, 'replace' as const),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('claim' as const), node, want: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      picks: fc.array(
        fc.record({ claim: index, outcome: fc.constantFrom(...OUTCOMES), drop: fc.boolean() }),
        {
          minLength: 1,
          maxLength: 3,
        },
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('cancel' as const, 'redrive' as const), job: index }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('bulk' as const),
      kind: fc.constantFrom(
        'cancel' as const,
        'pause' as const,
        'pause' as const,
        'resume' as const,
        'redrive' as const,
        'reschedule' as const,
      ),
      jobs: fc.option(fc.array(index, { maxLength: 5 }), { nil: undefined, freq: 3 }),
      statuses: fc.option(fc.subarray([...LIVE_STATUSES, ...TERMINAL_STATUSES]), { nil: undefined }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom('restart' as const, 'reconcile' as const), node }),
  },
);

/** The transitions that a step may cause: what else moves a job would be missing in the table. */
const MOVES: Readonly<Record<Exclude<Step['do'], 'bulk'>, readonly JobTransition[]>> = {
  insert: ['cancel'], // A superseded holder.
  claim: ['claim'],
  settle: ['succeed', 'fail', 'retry', 'snooze', 'release'],
  cancel: ['cancel'],
  redrive: ['redrive'],
  restart: ['rescue', 'exhaust'],
  reconcile: [],
};

const movesOf = (step: Step): readonly JobTransition[] => {
  if (step.do !== 'bulk') return MOVES[step.do];
  return step.kind === 'reschedule' ? [] : [step.kind];
};

interface Place {
  readonly id: string;
  readonly status: JobStatus;
  readonly claim_seq: string;
  readonly marked: boolean;
}

/** Where the table sends a job that may be marked. */
function after(before: { status: JobStatus; marked: boolean }, move: JobTransition): JobStatus | undefined {
  const to = statusAfter(before.status, move);
  return to && before.marked ? (TRANSITIONS[move].toIfPaused ?? to) : to;
}

/** The jobs that the steps made, and what they were told. */
class World {
  readonly ids: string[] = [];
  readonly claims: { id: string; claimSeq: string; bucket: BucketRef }[] = [];
  readonly recorded = new Set<string>();
  readonly dropped = new Set<string>();
  readonly #buckets: BucketRef[] = [];
  readonly #before = new Map<string, { status: JobStatus; seq: bigint; marked: boolean }>();

  static async create(): Promise<World> {
    await database.query(
      'truncate ratchet.job, ratchet.job_history, ratchet.dead_letter, ratchet.execution, ratchet.bucket',
    );
    const world = new World();
    for (const which of [0, 1]) await world.#start(which);
    return world;
  }

  async run(step: Step): Promise<void> {
    switch (step.do) {
      case 'insert': {
        const job = newJob(
          step.key === undefined ? {} : { businessKey: `k${String(step.key)}`, onConflict: step.onConflict },
        );
        const [answer] = await store.insert([job]);
        if (answer?.outcome === 'created') this.ids.push(job.id);
        return;
      }
      case 'claim': {
        const bucket = this.#bucket(step.node);
        const { claimed } = await store.exchange(turn(bucket, { want: step.want }));
        this.claims.push(...claimed.map(({ id, claimSeq }) => ({ id, claimSeq, bucket })));
        return;
      }
      case 'settle':
        return this.#settle(step.picks);
      case 'cancel':
      case 'redrive': {
        const id = this.ids[step.job % Math.max(1, this.ids.length)];
        if (id) await store[step.do](id);
        return;
      }
      case 'bulk':
        return this.#bulk(step);
      case 'restart':
        await this.#start(step.node);
        return;
      case 'reconcile': {
        const bucket = this.#bucket(step.node);
        const known = this.claims.filter((claim) => claim.bucket.id === bucket.id);
        const answer = await store.reconcile({ buckets: [bucket], known, unsettled: [] });
        expect(answer).toEqual({ strays: [], recorded: [], lost: [], deposed: [] });
      }
    }
  }

  /** Nothing runs beside it: it changes exactly what was counted before, and what was marked or paused is so afterwards. */
  async #bulk({ kind, jobs, statuses }: Step & { do: 'bulk' }): Promise<void> {
    const ids = jobs && this.ids.filter((_, at) => jobs.includes(at));
    const query: JobQuery = { ...(ids ? { ids } : {}), ...(statuses ? { statuses } : {}) };
    const expected = await store.countControllable(kind, query);
    const action: ControlAction = kind === 'reschedule' ? { kind, delayMs: 0 } : { kind };
    const { matched, changed, next } = await store.control(action, query);
    expect({ matched, next }).toEqual({ matched: expected, next: undefined });
    if (kind !== 'redrive') expect(changed).toHaveLength(expected);
    for (const { id, claimSeq } of changed) {
      const before = this.#before.get(id) ?? { status: 'pending' as const, seq: 0n, marked: false };
      expect(ids?.includes(id) ?? true).toBe(true);
      expect(statuses?.includes(before.status) ?? true).toBe(true);
      expect(claimSeq).toBe(before.status === 'running' ? String(before.seq) : undefined);
      if (before.status !== 'running' || kind === 'cancel') continue;
      this.#before.set(id, { ...before, marked: kind === 'pause' });
    }
  }

  async #settle(picks: (Step & { do: 'settle' })['picks']): Promise<void> {
    for (const pick of picks) {
      const claim = this.claims[pick.claim % Math.max(1, this.claims.length)];
      if (!claim) return;
      const settlement: Settlement = {
        id: claim.id,
        claimSeq: claim.claimSeq,
        outcome: pick.outcome,
        ...(pick.outcome === 'succeeded' ? { drop: pick.drop } : {}),
        ...(pick.outcome === 'retried' || pick.outcome === 'snoozed' ? { delayMs: 0 } : {}),
        ...(pick.outcome === 'failed' || pick.outcome === 'retried' ? { error: 'e' } : {}),
      };
      const { recorded, lost } = await store.exchange(turn(claim.bucket, { settle: [settlement], want: 0 }));
      expect(recorded.length + lost.length).toBe(1);
      if (recorded.length === 0) continue;
      const token = `${claim.id}/${claim.claimSeq}`;
      expect(this.recorded.has(token)).toBe(false);
      this.recorded.add(token);
      if (pick.outcome === 'succeeded' && pick.drop) this.dropped.add(claim.id);
    }
  }

  /** A start under the same id: what the older epoch held comes back. */
  async #start(which: number): Promise<void> {
    const ref = await store.registerNode({
      id: `n${String(which)}`,
      host: 'h',
      pid: 1,
      version: '1',
      lanes: [],
      handlers: [],
    });
    await store.rescueOwn(ref, 1);
    this.#buckets[which] = await store.openBucket(ref, 'default');
  }

  #bucket(which: number): BucketRef {
    const bucket = this.#buckets[which];
    if (!bucket) throw new Error('both nodes were started');
    return bucket;
  }

  async check(step: Step): Promise<void> {
    const places = await database.query<Place>(`
      select id::text, status, claim_seq::text, pause_requested as marked from ratchet.jobs`);
    const expected = this.ids.filter((id) => !this.dropped.has(id));
    expect(places.map(({ id }) => id).sort()).toEqual([...expected].sort());
    for (const { id, status, claim_seq, marked } of places) {
      const now = { status, seq: BigInt(claim_seq), marked };
      const before = this.#before.get(id) ?? { status: 'pending', seq: 0n, marked: false };
      this.#before.set(id, now);
      expect(now.seq >= before.seq).toBe(true);
      if (status === before.status && now.seq === before.seq) {
        // The mark belongs to one execution: only a pause or a resume of that one changes it.
        expect({ id, marked }).toEqual({ id, marked: before.marked });
        continue;
      }
      expect({ id, marked }).toEqual({ id, marked: false });
      const moves = movesOf(step).filter((move) => after(before, move) === status);
      // Beside the right status, the fence rises exactly where the table says so; a cancel cuts off nothing that does not run.
      const rose = now.seq > before.seq;
      const explained = moves.some((move) =>
        move === 'cancel' && before.status !== 'running' ? !rose : TRANSITIONS[move].fences === rose,
      );
      expect({ step: step.do, before, now, explained }).toEqual({
        step: step.do,
        before,
        now,
        explained: true,
      });
    }
  }

  /** Costs more, as it plans over every partition: at the end of a sequence. */
  async checkExecutions(): Promise<void> {
    const wrong = await database.query(`
      select 'two executions of one claim' as what, job_id from ratchet.executions group by job_id, claim_seq having count(*) > 1
      union all
      select 'executions miscounted', j.id from ratchet.jobs j left join ratchet.executions e on e.job_id = j.id
       group by j.id, j.executions having count(e.job_id) <> j.executions
      union all
      select 'running without a bucket', j.id from ratchet.job j
       where j.status = 1 and not exists (select from ratchet.bucket b where b.id = j.bucket)`);
    expect(wrong).toEqual([]);
  }
}

describe('the states of a job', () => {
  it('hold their invariants under any sequence of requests', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 50, size: 'max' }), async (steps) => {
        const world = await World.create();
        for (const each of steps) {
          await world.run(each);
          await world.check(each);
        }
        await world.checkExecutions();
      }),
      { numRuns: 25 },
    );
  }, 120_000);
});
