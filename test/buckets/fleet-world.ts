import { expect } from '@jest/globals';
import { describeError } from '../../lib/errors/describe-error.js';
import { OWNER_LEAVES } from '../../lib/store/bucket-transitions.js';
import {
  type BucketStatus,
  type LostReport,
  type NodeRegistration,
  type RescueReport,
} from '../../lib/store/job-store.js';
import { newJob } from '../support/store.js';
import { type TestDatabase } from '../support/database.js';
import { type Command, type NewBucket } from './fleet-commands.js';
import { BUDGET, GRACE_MS, LANES, ModelBucket, ModelJob, ModelNode } from './fleet-model.js';
import { abortedAfter, type FleetStore } from './fleet-store.js';
import { openFallback } from './fleet-fallback.js';
import { at, operate } from './fleet-operator.js';
import { takeTurn } from './fleet-turn.js';

let names = 0;

/** Nodes without a process: plain calls of the store, a clock moved by hand, and what should have become of it all. */
export class FleetWorld {
  readonly jobs = new Map<string, ModelJob>();
  readonly nodes: ModelNode[] = [];
  readonly buckets: ModelBucket[] = [];
  readonly paused = new Set<string>();
  /** How far the clock was moved. */
  nowMs = 0;

  private constructor(
    readonly fleet: FleetStore,
    readonly database: TestDatabase,
  ) {}

  static async create(fleet: FleetStore, database: TestDatabase): Promise<FleetWorld> {
    await database.query(
      `truncate ratchet.job, ratchet.job_history, ratchet.dead_letter, ratchet.execution, ratchet.bucket, ratchet.start_mark,
                ratchet.node, ratchet.lane, side_bucket_violation, side_bucket_seen`,
    );
    fleet.travel(0);
    const world = new FleetWorld(fleet, database);
    // Nobody has to wait for something to happen to.
    const buckets = LANES.map((lane) => ({ lane, priority: undefined, buffers: true }));
    for (let n = 0; n < 2; n++) await world.run({ do: 'join', buckets });
    for (const lane of LANES) await world.run({ do: 'insert', lane, priority: 2, count: 8, late: false });
    return world;
  }

  async run(command: Command): Promise<void> {
    switch (command.do) {
      case 'join':
        return this.#join(command.buckets);
      case 'open': {
        const node = at(this.nodes, command.node);
        return node && this.#open(node, command);
      }
      case 'insert':
        return this.#insert(command);
      case 'turn': {
        const bucket = at(
          this.buckets.filter(({ node, status }) => node.alive && status !== 'gone'),
          command.bucket,
        );
        return bucket && takeTurn(this, bucket, command);
      }
      case 'zombie': {
        const zombies = this.buckets.filter(({ node, taken }) => !node.alive || taken);
        const holding = zombies.filter((each) => each.node.claims.some(({ bucket }) => bucket === each));
        const bucket = at(holding.length > 0 ? holding : zombies, command.bucket);
        return bucket && takeTurn(this, bucket, command);
      }
      case 'complete': {
        const bucket = at(
          this.buckets.filter(({ node, believed }) => node.alive && believed === 'active'),
          command.bucket,
        );
        return bucket && this.#complete(bucket);
      }
      case 'zombie step': {
        const bucket = at(
          this.buckets.filter(({ node, taken }) => !node.alive || taken),
          command.bucket,
        );
        const holds = bucket?.node.claims.some((claim) => claim.bucket === bucket);
        return bucket && (holds ? this.#complete(bucket) : this.#step(bucket));
      }
      case 'leave': {
        const node = at(this.#alive(), command.node);
        return node && this.#leave(node, command.dies);
      }
      case 'crash': {
        const node = at(this.#alive(), command.node);
        if (node) node.alive = false;
        return;
      }
      case 'death': {
        const node = at(this.#alive(), command.node);
        if (!node) return;
        node.alive = false;
        await this.pass();
        const by = at(this.#alive(), command.by);
        if (!by) return;
        await this.rescue(by);
        // What was taken back is soon claimed again.
        const spec = { settle: [], release: 0, begin: 0, want: 8, beginNow: 4 };
        for (const bucket of by.buckets.filter(({ status }) => status === 'active'))
          await takeTurn(this, bucket, spec);
        return;
      }
      case 'thaw': {
        const node = at(
          this.nodes.filter(({ alive }) => !alive),
          command.node,
        );
        return node && this.#thaw(node);
      }
      case 'restart': {
        const node = at(this.nodes, command.node);
        return node && this.#restart(node, command.dies);
      }
      case 'pass':
        return this.pass();
      case 'fallback': {
        const node = at(this.nodes, command.node);
        return node && openFallback(this, node, command.lane);
      }
      case 'rescue': {
        const [node, beside] = [command.node, command.beside].map((pick) => at(this.#alive(), pick));
        return node && this.rescue(node, { ...command, beside: beside === node ? undefined : beside });
      }
      default:
        return operate(this, command);
    }
  }

  async #join(buckets: readonly NewBucket[], id = `n${String((names += 1))}`): Promise<void> {
    if (this.#alive().length < 5) {
      const node = await this.#register(id);
      for (const bucket of buckets) await this.#open(node, bucket);
    }
  }

  /** A node that serves everything, for the end of a run. */
  async healer(): Promise<ModelNode> {
    const node = await this.#register(`n${String((names += 1))}`);
    for (const lane of LANES) await this.#open(node, { lane, priority: undefined, buffers: false });
    return node;
  }

  async #register(id: string): Promise<ModelNode> {
    const registration = registrationOf(id);
    const ref = await this.fleet.store.registerNode(registration);
    for (const before of this.nodes.filter((each) => each.ref.id === id && each.member)) {
      before.member = false;
      before.alive = false;
    }
    const node = new ModelNode(ref, registration.process ?? '', this.nowMs);
    this.nodes.push(node);
    return node;
  }

  async #open(node: ModelNode, { lane, priority, buffers }: NewBucket): Promise<void> {
    const expected = !node.member ? 'NODE_DEPOSED' : node.cordoned ? 'NODE_CORDONED' : undefined;
    try {
      const ref = await this.fleet.store.openBucket(node.ref, lane, priority);
      expect(expected).toBeUndefined();
      const bucket = new ModelBucket(ref, node, buffers);
      node.buckets.push(bucket);
      this.buckets.push(bucket);
    } catch (error) {
      expect(describeError(error).code).toBe(expected);
    }
  }

  async #insert({ lane, priority, count, late }: Command & { do: 'insert' }): Promise<void> {
    const delayMs = late ? 1.5 * GRACE_MS : 0;
    const jobs = Array.from({ length: count }, () => newJob({ lane, priority, delayMs }));
    const inserted = await this.fleet.store.insert(jobs);
    expect(inserted.map(({ outcome }) => outcome)).toEqual(jobs.map(() => 'created'));
    for (const { id } of jobs) {
      this.jobs.set(id, new ModelJob(id, lane, priority, this.nowMs + delayMs));
    }
  }

  /** Time passes: nodes that live beat, the others count as dead. */
  async pass(ms = GRACE_MS + 1_000): Promise<void> {
    this.nowMs += ms;
    this.fleet.travel(this.nowMs);
    for (const node of this.#alive()) {
      expect(await this.#beat(node)).toBe(true);
    }
  }

  async #beat(node: ModelNode): Promise<boolean> {
    const request = { node: node.ref, graceMs: GRACE_MS, running: 0, lagMs: 0 };
    const { alive, cordoned } = await this.fleet.store.beat(request);
    expect({ alive, cordoned: cordoned ?? false }).toEqual({
      alive: node.member,
      cordoned: node.member && node.cordoned,
    });
    if (alive) node.beatMs = this.nowMs;
    return alive;
  }

  /** It was suspended, and goes on: as a member, or, once it was declared dead, under a new epoch. */
  async #thaw(node: ModelNode): Promise<void> {
    if (await this.#beat(node)) {
      node.alive = true;
      return;
    }
    const registration = { ...registrationOf(node.ref.id), process: node.process };
    const ref = await this.fleet.store.returnNode(registration);
    const other = this.nodes.find((each) => each.ref.id === node.ref.id && each.member);
    // Its own row, that an earlier call has made: that one goes on.
    if (other?.process === node.process) {
      expect(ref).toEqual(other.ref);
      other.alive = true;
      other.beatMs = this.nowMs;
      return;
    }
    expect(ref === undefined).toBe(other !== undefined);
    if (ref) this.nodes.push(new ModelNode(ref, node.process, this.nowMs));
  }

  /** A new process under the id takes back what the old ones held. */
  async #restart({ ref: { id } }: ModelNode, dies: number | undefined): Promise<void> {
    const node = await this.#register(id);
    let report: RescueReport | undefined;
    const died = await this.fleet.dyingAfter(dies, async () => {
      report = await this.fleet.store.rescueOwn(node.ref, BUDGET);
    });
    if (died) node.alive = false;
    const whose = this.buckets.filter((bucket) => bucket.ownerless && bucket.node.ref.id === id);
    const free = whose.filter(({ drainer }) => !drainer?.member || drainer === node);
    await this.sync(whose);
    if (died) return;
    expect(report?.buckets).toBe(free.length);
    expect(free.map(({ status }) => status)).toEqual(free.map(() => 'gone'));
  }

  async rescue(
    node: ModelNode,
    {
      beside,
      dies,
      aborts,
    }: { beside?: ModelNode | undefined; dies?: number | undefined; aborts?: number | undefined } = {},
  ): Promise<void> {
    const terms = { maxCrashRedeliveries: BUDGET, graceMs: GRACE_MS };
    const { fleet } = this;
    const signal = aborts === undefined ? undefined : abortedAfter(aborts);
    const others = beside ? fleet.beside.rescueLost({ node: beside.ref, ...terms }) : undefined;
    let own: LostReport | undefined;
    const died = await fleet.dyingAfter(dies, async () => {
      try {
        own = await fleet.store.rescueLost({ node: node.ref, ...terms }, signal);
      } catch (error) {
        if (!signal?.aborted) throw error;
      }
    });
    const reports = [own, await others].filter((report) => report !== undefined);
    if (died) node.alive = false;
    await this.#buried(reports.flatMap(({ dead }) => dead.map(({ id }) => id)));
    const ownerless = this.buckets.filter((bucket) => bucket.ownerless);
    await this.sync(ownerless);
    const drained = reports.flatMap((report) => report.drained.map(({ id }) => id));
    expect(new Set(drained).size).toBe(drained.length);
    // When nobody was cut off, nothing is left but what a node drains that stopped a moment ago.
    if (own?.faults.length === 0 && !died) {
      const left = ownerless.filter(({ status, drainer }) => status !== 'gone' && !drainer?.member);
      expect(left.map(({ ref, status }) => ({ id: ref.id, status }))).toEqual([]);
    }
  }

  /** Who is declared dead, was past the grace, and was told of once. */
  async #buried(told: readonly string[]): Promise<void> {
    const rows = await this.database.query<{ id: string; epoch: string }>(
      'select id, epoch::text as epoch from ratchet.node',
    );
    const there = new Set(rows.map(({ id, epoch }) => `${id}/${epoch}`));
    const dead = this.nodes.filter(({ member, ref }) => member && !there.has(`${ref.id}/${ref.epoch}`));
    for (const node of dead) {
      expect({ alive: node.alive, silent: this.nowMs - node.beatMs > GRACE_MS }).toEqual({
        alive: false,
        silent: true,
      });
      node.member = false;
    }
    expect(new Set(told).size).toBe(told.length);
    expect(dead.map(({ ref }) => ref.id)).toEqual(expect.arrayContaining([...told]));
  }

  /** A polite end: it gives back what it holds, walks its buckets to their end, and goes. */
  async #leave(node: ModelNode, dies: number | undefined): Promise<void> {
    for (const bucket of node.buckets.filter(({ owned }) => owned)) {
      if (bucket.believed === 'active') await this.#complete(bucket);
      await takeTurn(this, bucket, {
        settle: Array.from({ length: 99 }, () => ({ claim: 0, outcome: 'released' as const })),
        release: 99,
        begin: 0,
        want: 0,
        beginNow: 0,
      });
    }
    const died = await this.fleet.dyingAfter(dies, async () => {
      for (const { ref, believed, owned } of node.buckets) {
        if (!owned) continue;
        let from: BucketStatus = believed;
        for (const to of OWNER_LEAVES.slice(OWNER_LEAVES.indexOf(believed) + 1)) {
          expect(await this.fleet.store.setBucketStatus(ref, from, to)).toBe(true);
          from = to;
        }
      }
      await this.fleet.store.removeNode(node.ref);
    });
    node.alive = false;
    const rows = await this.database.query('select from ratchet.node where id = $1 and epoch = $2', [
      node.ref.id,
      node.ref.epoch,
    ]);
    node.member = rows.length > 0;
    if (!died) expect(node.member).toBe(false);
    await this.sync(node.buckets);
    if (!died) expect(node.buckets.filter(({ status }) => status !== 'gone')).toEqual([]);
  }

  async #complete(bucket: ModelBucket): Promise<void> {
    if (bucket.believed === 'active') await this.#step(bucket);
  }

  async #step(bucket: ModelBucket): Promise<void> {
    const from = bucket.believed;
    const to = OWNER_LEAVES[OWNER_LEAVES.indexOf(from) + 1];
    if (!to) return;
    const moved = await this.fleet.store.setBucketStatus(bucket.ref, from, to);
    // A step may be repeated: a bucket that is there already has moved.
    const fits = !bucket.taken && (bucket.status === from || bucket.status === to);
    const holds = [...this.jobs.values()].some(({ claim }) => claim?.bucket === bucket);
    const ends = to === 'ready_to_delete';
    expect(moved).toBe((fits && !(ends && holds)) || (ends && bucket.status === 'gone'));
    if (moved) {
      bucket.believed = to;
      bucket.status = to === 'ready_to_delete' ? 'gone' : to;
    }
  }

  /** Reads what became of buckets that others may have moved; what was taken back from them, was taken back as a whole. */
  async sync(buckets: readonly ModelBucket[]): Promise<void> {
    const ids = buckets.map(({ ref }) => ref.id);
    const rows = await this.database.query<{
      id: string;
      status: BucketStatus;
      taken: boolean;
      drainer: string | null;
    }>(
      `select b.id::text as id, b.status, b.epoch > 1 as taken, b.drainer_id || '/' || b.drainer_epoch as drainer
         from ratchet.bucket b where b.id = any ($1)`,
      [ids],
    );
    const held = await this.database.query<{ id: string; seq: string }>(
      'select id::text as id, claim_seq::text as seq from ratchet.job where status = 1 and bucket = any ($1)',
      [ids],
    );
    const standing = new Set(held.map(({ id, seq }) => `${id}/${seq}`));
    const found = new Map(rows.map((row) => [row.id, row]));
    for (const bucket of buckets) {
      const row = found.get(bucket.ref.id);
      bucket.status = row?.status ?? 'gone';
      bucket.taken ||= row?.taken ?? true;
      bucket.drainer = this.nodes.find(({ ref }) => `${ref.id}/${ref.epoch}` === row?.drainer);
      const claims = [...this.jobs.values()].flatMap(({ claim }) => (claim?.bucket === bucket ? claim : []));
      const left = claims.filter(({ job, seq }) => standing.has(`${job.id}/${seq}`));
      if (left.length > 0) expect(left).toHaveLength(claims.length);
      else for (const { job } of claims) job.takenBack();
    }
  }

  readonly #alive = (): ModelNode[] => this.nodes.filter(({ alive }) => alive);
}

function registrationOf(id: string): NodeRegistration {
  const process = `process ${String((names += 1))}`;
  return {
    id,
    host: 'h',
    pid: 1,
    version: '1',
    lanes: [...LANES],
    handlers: ['test.job'],
    process,
    buffers: true,
  };
}
