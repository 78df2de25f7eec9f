import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { SystemClock } from '../../lib/cluster/clock.js';
import { type BeatState } from '../../lib/cluster/heartbeat/beater.js';
import { MainThreadBeater } from '../../lib/cluster/heartbeat/main-thread-beater.js';
import { type BeatProgram, WorkerThreadBeater } from '../../lib/cluster/heartbeat/worker-thread-beater.js';
import { clientConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { type BeatAnswer, type NodeRef } from '../../lib/store/membership.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, registerTestNode } from '../support/store.js';
import { createTcpProxy } from '../support/tcp-proxy.js';

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

type Heard = { answer: BeatAnswer } | { error: unknown } | { silencedMs: number } | { changed: string };

interface SubjectOptions {
  /** Given with the start of the thread. */
  readonly first?: object;
  readonly store?: PostgresJobStore;
  readonly stallMs?: number;
  readonly script?: URL;
  readonly clock?: SystemClock;
  readonly settings?: (real: () => Promise<object>) => Promise<object>;
}

/** The waits of a second and more pass fifty times as fast. */
class EagerClock extends SystemClock {
  override timer(ms: number, callback: () => void, background?: boolean): () => void {
    return super.timer(ms >= 1_000 ? ms / 50 : ms, callback, background);
  }
}

/** A beater whose news the test awaits. */
class Subject {
  readonly heard: Heard[] = [];
  readonly beater: WorkerThreadBeater;
  #waiting: (() => void)[] = [];

  private constructor(
    beater: WorkerThreadBeater,
    readonly node: NodeRef,
  ) {
    this.beater = beater;
    const tell = (heard: Heard): void => {
      this.heard.push(heard);
      for (const resolve of this.#waiting.splice(0)) resolve();
    };
    beater.start({
      answered: (answer) => tell({ answer }),
      failed: (error) => tell({ error }),
      silenced: (silencedMs) => tell({ silencedMs }),
      changed: (changed) => tell({ changed }),
    });
  }

  static async create(options: SubjectOptions = {}): Promise<Subject> {
    const used = options.store ?? store;
    const real = (await used.beatProgram())!;
    const { settings, first, stallMs = 60_000, clock = new SystemClock(), script } = options;
    const program: BeatProgram = settings
      ? { ...real, settings: () => settings(() => real.settings()) }
      : real;
    const fallback = new MainThreadBeater(used, clock);
    const beater = new WorkerThreadBeater({
      program,
      clock,
      stallMs,
      fallback,
      ...(script ? { script } : {}),
      ...(first ? { settings: first } : {}),
    });
    return new Subject(beater, await registerTestNode(store));
  }

  state(changes: Partial<BeatState> = {}): BeatState {
    return { node: this.node, graceMs: 3_000, running: 0, lagMs: 0, intervalMs: 50, ...changes };
  }

  async next(accept: (heard: Heard) => boolean): Promise<Heard> {
    for (let seen = 0; ; seen += 1) {
      while (seen >= this.heard.length) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      const heard = this.heard[seen]!;
      if (accept(heard)) return heard;
    }
  }

  forget(): void {
    this.heard.splice(0);
  }
}

const answered = (heard: Heard): boolean => 'answer' in heard;
const failed = (heard: Heard): boolean => 'error' in heard;
const beatsSeen = async (id: string): Promise<string> =>
  (await database.query(`select heartbeat_at::text as at from ratchet.node where id = $1`, [id]))[0]![
    'at'
  ] as string;

/** Keeps this thread busy, as a handler would that never yields. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe('WorkerThreadBeater', () => {
  let subject: Subject;
  afterEach(() => subject.beater.stop());

  it('beats on a connection of its own, and brings the answers', async () => {
    subject = await Subject.create();
    subject.beater.update(subject.state({ running: 4 }));
    expect(await subject.next(answered)).toMatchObject({ answer: { alive: true, lost: false, notices: [] } });
    expect(subject.beater.acknowledgedAtMs).toBeLessThanOrEqual(performance.now());
    expect((await store.nodes()).find(({ id }) => id === subject.node.id)!.running).toBe(4);
    const connections = await database.query(
      `select 1 from pg_stat_activity where datname = current_database() and application_name = 'ratchet/test/heartbeat'`,
    );
    expect(connections).toHaveLength(1);
  });

  it('ends as soon as its connection is closed', async () => {
    subject = await Subject.create();
    subject.beater.update(subject.state());
    await subject.next(answered);
    const beganMs = performance.now();
    await subject.beater.stop();
    // A goodbye of the connection that takes too long is waited for half a second.
    expect(performance.now() - beganMs).toBeLessThan(450);
  });

  it('beats on while the main thread is blocked', async () => {
    subject = await Subject.create();
    subject.beater.update(subject.state());
    await subject.next(answered);
    const before = await beatsSeen(subject.node.id);
    const acknowledged = subject.beater.acknowledgedAtMs!;
    block(1_000);
    // Seen without a turn of the event loop.
    expect(subject.beater.acknowledgedAtMs! - acknowledged).toBeGreaterThan(500);
    expect(await beatsSeen(subject.node.id)).not.toBe(before);
  });

  it('beats although the main thread is blocked from the first moment on', async () => {
    const program = (await store.beatProgram())!;
    subject = await Subject.create({ first: await program.settings() });
    subject.beater.update(subject.state({ graceMs: 9_000 }));
    // Not one turn of the event loop until a beat is acknowledged.
    for (let turns = 0; turns < 150 && subject.beater.acknowledgedAtMs === undefined; turns += 1) block(100);
    expect(subject.beater.acknowledgedAtMs).toBeDefined();
    expect(subject.heard).toEqual([]);
  });

  it('falls silent when the main thread shows no life for the stall limit, and beats again afterwards', async () => {
    subject = await Subject.create({ stallMs: 300 });
    // The signs of life that a node gives.
    const alive = setInterval(() => subject.beater.update(subject.state()), 20);
    await subject.next(answered);
    block(1_500);
    const silentSince = subject.beater.acknowledgedAtMs!;
    expect(performance.now() - silentSince).toBeGreaterThan(800);
    expect(await subject.next((heard) => 'silencedMs' in heard)).toMatchObject({
      silencedMs: expect.any(Number),
    });
    subject.forget();
    await subject.next(answered);
    clearInterval(alive);
  });

  it('beats for the next epoch as soon as it is told', async () => {
    subject = await Subject.create();
    subject.beater.update(subject.state({ intervalMs: 60_000 }));
    await subject.next(answered);
    subject.forget();
    const again = await store.registerNode({
      id: subject.node.id,
      host: 'h',
      pid: 1,
      version: '1',
      lanes: [],
      handlers: [],
    });
    subject.beater.update(subject.state({ node: again, intervalMs: 60_000 }));
    expect(await subject.next(answered)).toMatchObject({ answer: { alive: true } });
  });

  it('does not take the answer for an epoch that was left meanwhile for one of the next', async () => {
    subject = await Subject.create();
    subject.beater.update(subject.state({ graceMs: 30_000, intervalMs: 60_000 }));
    await subject.next(answered);
    subject.forget();
    await store.removeNode(subject.node);
    const lock = await database.connect();
    await lock.query('begin; lock table ratchet.notice in access exclusive mode');
    subject.beater.beatNow();
    for (;;) {
      const waiting = await database.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      if (waiting.length > 0) break;
    }
    const again = await registerTestNode(store, subject.node.id);
    subject.beater.update(subject.state({ node: again, graceMs: 30_000, intervalMs: 60_000 }));
    await lock.query('commit');
    expect(await subject.next(answered)).toMatchObject({ answer: { alive: true } });
  });

  it('reports a lost connection, and opens another', async () => {
    subject = await Subject.create();
    subject.beater.update(subject.state());
    await subject.next(answered);
    subject.forget();
    await database.terminateBackends('%heartbeat');
    await subject.next(answered);
  });

  it('notices a connection that swallows everything, and reports it', async () => {
    const proxy = await createTcpProxy(database.url);
    const behind = createStore(proxy.url);
    try {
      subject = await Subject.create({ store: behind });
      subject.beater.update(subject.state());
      await subject.next(answered);
      proxy.freeze();
      subject.forget();
      expect(await subject.next(failed)).toMatchObject({
        error: { code: 'STORE_FAULT', kind: 'unknown', sourceCode: 'ETIMEDOUT' },
      });
    } finally {
      await behind.close();
      await proxy.close();
    }
  });

  it('asks for a password for each connect', async () => {
    const url = new URL(database.url);
    let calls = 0;
    let onCall = (): void => {};
    const engine = clientConfigOf({
      host: url.hostname,
      port: Number(url.port),
      username: url.username,
      database: url.pathname.slice(1),
      password: () => {
        calls += 1;
        onCall();
        return url.password;
      },
    });
    const other = createStore(database.url, { engine });
    subject = await Subject.create({ store: other });
    subject.beater.update(subject.state());
    await subject.next(answered);
    const before = calls;
    const called = new Promise<void>((resolve) => (onCall = resolve));
    await database.terminateBackends('%heartbeat');
    await called;
    expect(calls).toBeGreaterThan(before);
    subject.forget();
    await subject.next(answered);
    await other.close();
  });

  it('says when the node has no row, which acknowledges nothing', async () => {
    subject = await Subject.create();
    subject.beater.update(subject.state({ node: { id: 'x', epoch: '1' } }));
    expect(await subject.next(answered)).toMatchObject({ answer: { alive: false } });
    expect(subject.beater.acknowledgedAtMs).toBeUndefined();
    subject.forget();
    subject.beater.update(subject.state());
    await subject.next((heard) => 'answer' in heard && heard.answer.alive);
  });
});

describe('the acknowledgement', () => {
  it('is of the epoch of now', async () => {
    const subject = await Subject.create();
    subject.beater.update(subject.state());
    await subject.next(answered);
    expect(subject.beater.acknowledgedAtMs).toBeDefined();
    const again = await registerTestNode(store, subject.node.id);
    // However late this thread looks, no beat of the new epoch has been answered.
    const holder = await database.connect();
    await holder.query('begin');
    await holder.query('select from ratchet.node where id = $1 for update', [again.id]);
    subject.beater.update(subject.state({ node: again }));
    expect(subject.beater.acknowledgedAtMs).toBeUndefined();
    await holder.query('rollback');
    // The old epoch's beats may still be on their way.
    block(200);
    subject.forget();
    await subject.next(answered);
    expect(subject.beater.acknowledgedAtMs).toBeDefined();
    await subject.beater.stop();
  });
});

describe('a thread that does not start', () => {
  const url = (script: string): URL => new URL(`data:text/javascript,${script}`);
  it.each([
    ['its file is missing', new URL('./no-such-worker.mjs', import.meta.url)],
    ['the constructor throws', new URL('http://localhost/worker.mjs')],
    ['it ends at once', url('process.exit(1)')],
    ['it never gets ready', url('setInterval(() => {}, 1000)')],
  ])('%s: the main thread beats, and a renamed node goes on', async (_why, script) => {
    const subject = await Subject.create({ script, clock: new EagerClock() });
    subject.beater.update(subject.state());
    const { answer } = (await subject.next(answered)) as { answer: BeatAnswer };
    expect(answer.alive).toBe(true);
    expect(subject.beater.acknowledgedAtMs).toBeDefined();
    const again = await registerTestNode(store, subject.node.id);
    subject.beater.update(subject.state({ node: again }));
    expect(subject.beater.acknowledgedAtMs).toBeUndefined();
    subject.forget();
    expect(await subject.next(answered)).toMatchObject({ answer: { alive: true } });
    await subject.beater.stop();
  });

  it('says what that means, once', async () => {
    const subject = await Subject.create({
      script: new URL('http://localhost/worker.mjs'),
      clock: new EagerClock(),
    });
    subject.beater.update(subject.state());
    await subject.next(answered);
    await subject.beater.stop();
    expect(subject.heard.filter((heard) => 'changed' in heard)).toEqual([
      {
        changed: expect.stringMatching(
          /did not start, 3 times in a row.*main thread.*keep nestjs-ratchet external/,
        ),
      },
    ]);
    expect(subject.heard.filter(failed)).toHaveLength(3);
  });
});

describe('a database that is away', () => {
  it('is no reason to give the thread up', async () => {
    const subject = await Subject.create({
      settings: () => Promise.resolve({ host: '127.0.0.1', port: 1, user: 'nobody' }),
    });
    subject.beater.update(subject.state());
    for (let n = 0; n < 3; n += 1) {
      subject.forget();
      // As the main thread's own statements say it: nothing that waits for a person.
      expect(await subject.next(failed)).toMatchObject({
        error: { code: 'STORE_FAULT', kind: 'unavailable' },
      });
    }
    expect(subject.heard.filter((heard) => 'changed' in heard)).toEqual([]);
    await subject.beater.stop();
  });

  it('does not hold up the stop: a connect under way is given up', async () => {
    const proxy = await createTcpProxy(database.url);
    proxy.freeze();
    const url = new URL(proxy.url);
    const subject = await Subject.create({
      settings: () => Promise.resolve({ host: url.hostname, port: Number(url.port), user: 'nobody' }),
    });
    const connecting = proxy.connected();
    subject.beater.update(subject.state({ graceMs: 30_000 }));
    await connecting;
    const beganMs = performance.now();
    await subject.beater.stop();
    expect(performance.now() - beganMs).toBeLessThan(1_200);
    await proxy.close();
  });
});

describe('settings that hang', () => {
  it('are asked for once at a time, however often the thread asks', async () => {
    let calls = 0;
    const subject = await Subject.create({
      settings: () => {
        calls += 1;
        return new Promise(() => {});
      },
    });
    subject.beater.update(subject.state({ graceMs: 300 }));
    for (let n = 0; n < 3; n += 1) {
      subject.forget();
      await subject.next(failed);
    }
    expect(calls).toBe(1);
    await subject.beater.stop();
  });
});

describe('the program of a store', () => {
  it('is none when only this thread can open its connections', async () => {
    const engine = clientConfigOf({ url: database.url, extra: { stream: () => undefined } });
    const other = createStore(database.url, { engine });
    expect(await other.beatProgram()).toBeUndefined();
    await other.close();
  });
});
