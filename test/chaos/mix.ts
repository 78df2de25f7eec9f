import { type ChaosFixture, FLEET, GRACE_MS, said } from './chaos-fixture.js';
import { type Finding } from './history-checker.js';
import { LimitedRole } from './limited-role.js';
import { Load } from './load.js';
import { Operator } from './operator.js';
import { type OwnServer } from './own-server.js';
import { Random } from './random.js';
import { Supervisor } from './supervisor.js';

export interface MixOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly ms: number;
  /** Restarts are part of the mix when it is the test's own. */
  readonly server: OwnServer | undefined;
  readonly say: (line: string) => void;
}

export interface MixReport {
  readonly findings: readonly Finding[];
  readonly summary: Record<string, number>;
}

/** What is left when everything is healed must be done within this. */
const SETTLE_MS = 120_000;

/**
 * Does to a cluster under load what happens to clusters, one thing after another, as the seed says. In the end everything is healed, all
 * that was enqueued must end, and the checker judges.
 */
export class Mix {
  readonly #chaos: ChaosFixture;
  readonly #options: MixOptions;
  readonly #random: Random;
  readonly #nodes: Supervisor[] = [];
  readonly #done = new Map<string, number>();
  readonly #operator: Operator;
  #load!: Load;
  #role!: LimitedRole;

  constructor(chaos: ChaosFixture, options: MixOptions) {
    this.#chaos = chaos;
    this.#options = options;
    this.#random = new Random(options.seed);
    this.#operator = new Operator(chaos, this.#random);
  }

  async run(): Promise<MixReport> {
    const { nodes, ms, seed } = this.#options;
    this.#role = await LimitedRole.on(this.#chaos.database);
    this.#load = await Load.on(this.#chaos.database.url, new Random(seed + 1));
    try {
      for (let n = 0; n < nodes; n++) {
        this.#nodes.push(await Supervisor.of(this.#chaos, this.#role.url, `node-${String(n)}`, FLEET));
      }
      await Promise.all(this.#nodes.map(({ worker }) => worker.ready()));
      this.#load.start();
      const untilMs = performance.now() + ms;
      while (performance.now() < untilMs) await this.#act();
      await this.#load.stop();
      await this.#operator.putRight();
      await this.#allEnded();
    } finally {
      await this.#load.stop();
      await Promise.all(this.#nodes.map((node) => node.end()));
      await this.#load.close();
      await this.#role.drop();
    }
    return { findings: await this.#judge(), summary: await this.#summary() };
  }

  async #act(): Promise<void> {
    const actions: [string, () => Promise<void>][] = [
      ['kill', () => this.#kill()],
      ['kill', () => this.#kill()],
      ['freeze', () => this.#freeze()],
      ['freeze', () => this.#freeze()],
      ['terminate', () => this.#terminate()],
      ['cut off', () => this.#cut('all')],
      ['deafen', () => this.#cut('listener')],
      ['sever sessions', () => this.#sever()],
      ['read-only', () => this.#readOnly()],
      ['exhaust the pool', () => this.#exhaust()],
      [
        'block the loop',
        () => this.#load.one('chaos.spin', { ms: this.#random.integer(200, 1.5 * GRACE_MS) }),
      ],
      ['pause a lane', () => this.#operator.pauseLane()],
      ['drain a bucket', () => this.#operator.drainBucket()],
      ['drain a node', () => this.#operator.drainNode(this.#any().worker.nodeId)],
      ['poison', () => this.#load.one('chaos.abort', {})],
    ];
    if (this.#options.server) actions.push(['restart the database', () => this.#restart()]);
    const [name, act] = this.#random.one(actions);
    this.#done.set(name, (this.#done.get(name) ?? 0) + 1);
    this.#options.say(`  ${name}`);
    await act();
    await pause(this.#random.between(100, 1_000));
  }

  #any(): Supervisor {
    return this.#random.one(this.#nodes);
  }

  async #kill(): Promise<void> {
    const node = this.#any();
    if (this.#random.next() < 0.5) node.rename();
    node.worker.kill('SIGKILL');
    await node.worker.exited;
  }

  async #terminate(): Promise<void> {
    const node = this.#any();
    if (this.#random.next() < 0.5) node.rename();
    node.worker.kill('SIGTERM');
    await pause(this.#random.between(0, 500));
  }

  async #freeze(): Promise<void> {
    const { worker } = this.#any();
    worker.kill('SIGSTOP');
    await pause(this.#random.between(0.2, 2.5) * GRACE_MS);
    worker.kill('SIGCONT');
  }

  async #cut(what: 'all' | 'listener'): Promise<void> {
    const { network } = this.#any();
    network.swallow(what);
    await pause(this.#random.between(0.2, 2.5) * GRACE_MS);
    network.heal();
  }

  async #sever(): Promise<void> {
    await this.#chaos.database.terminateBackends().catch(() => 0);
  }

  async #readOnly(): Promise<void> {
    const { database } = this.#chaos;
    const set = (what: string): Promise<unknown> =>
      database.query(`begin read write; alter database ${database.name} ${what}; commit`);
    await set('set default_transaction_read_only = on');
    await this.#sever();
    await pause(this.#random.between(200, 2_000));
    await set('reset default_transaction_read_only');
    await this.#sever();
  }

  /** The connections that the server has for nodes, some or all of them; or those of the application that enqueues. */
  async #exhaust(): Promise<void> {
    const ms = this.#random.between(0.2, 2.5) * GRACE_MS;
    // All or none of the nodes' needs, or something in between, for which they compete.
    const left = this.#random.integer(0, 3 * this.#nodes.length);
    if (this.#random.next() < 0.3) return this.#load.withoutConnections(() => pause(ms));
    await this.#role.exhaust(left);
    await pause(ms);
    await this.#role.relieve();
  }

  async #restart(): Promise<void> {
    const server = this.#options.server!;
    await server.stop(this.#random.one(['fast', 'immediate']));
    await pause(this.#random.between(0, 2_000));
    await server.start();
  }

  /** Also what nobody knows to be there: children, and jobs whose enqueue was in doubt. */
  async #allEnded(): Promise<void> {
    const lastMs = performance.now() + SETTLE_MS;
    for (;;) {
      const [row] = await this.#chaos.database
        .query<{ n: number }>('select count(*)::int as n from ratchet.job')
        .catch(() => [{ n: 1 }]);
      if (row!.n === 0 || performance.now() > lastMs) return;
      await pause(50);
    }
  }

  async #judge(): Promise<Finding[]> {
    const { acknowledged, rolledBack } = this.#load;
    const findings = await this.#chaos.judge([...acknowledged], { rolledBack, slots: FLEET.concurrency });
    const rejections = this.#chaos.workers.flatMap(({ events }) => events.filter(said('unhandledRejection')));
    return [
      ...findings,
      ...rejections.map((detail) => ({ rule: 'no promise is left alone', detail: { ...detail } })),
    ];
  }

  async #summary(): Promise<Record<string, number>> {
    const [row] = await this.#chaos.database.query<Record<string, number>>(`
      select (select count(*)::int from ratchet.jobs) as jobs,
             (select count(*)::int from ratchet.executions) as executions,
             (select count(*)::int from ratchet.executions where outcome = 'crashed') as crashed,
             (select count(*)::int from ratchet.executions where late_at is not null) as late,
             (select count(*)::int from ratchet.dead_letter) as "dead letter",
             (select count(*)::int from side_bucket_seen) as buckets,
             (select count(*)::int from side_gone where not replaced and silent_ms >= ${String(GRACE_MS)}) as "declared dead",
             (select deadlocks::int from pg_stat_database where datname = current_database()) as deadlocks`);
    return {
      ...Object.fromEntries(this.#done),
      acknowledged: this.#load.acknowledged.size,
      'rolled back': this.#load.rolledBack.length,
      'in doubt': this.#load.doubtful,
      ...row,
    };
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
