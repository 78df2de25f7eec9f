import { type NodeRef } from '../store/job-store.js';
import { type LockStore } from '../store/lock-store.js';
import { contractRunner } from './contract/contract-runner.js';

/** An implementation of {@link LockStore} to examine. */
export interface LockStoreSubject {
  readonly locks: LockStore;
  /** Lets the store's time pass by so much. */
  pass(ms: number): Promise<void> | void;
  close(): Promise<void>;
}

const TTL_MS = 60_000;
const a: NodeRef = { id: 'a', epoch: '1' };
const b: NodeRef = { id: 'b', epoch: '2' };

/** What every {@link LockStore} must do, as tests of the runner whose globals are present. `create` is called once. */
export function describeLockStoreContract(name: string, create: () => Promise<LockStoreSubject>): void {
  const runner = contractRunner();
  const { expect, it } = runner;
  runner.describe(`${name} keeps the contract of LockStore`, () => {
    let subject: LockStoreSubject;
    runner.beforeAll(async () => {
      subject = await create();
    });
    runner.afterAll(() => subject.close());

    it('gives a lease to one node', async () => {
      expect(await subject.locks.tryLock('one', TTL_MS, a)).toBe(true);
      expect(await subject.locks.tryLock('one', TTL_MS, b)).toBe(false);
      expect(await subject.locks.tryLock('another', TTL_MS, b)).toBe(true);
    });

    it('lets exactly one of many win, and one of many who come when it expires', async () => {
      const nodes = Array.from({ length: 20 }, (_, index) => ({
        id: `n${String(index)}`,
        epoch: String(index),
      }));
      for (let round = 0; round < 2; round += 1) {
        const won = await Promise.all(nodes.map((node) => subject.locks.tryLock('race', TTL_MS, node)));
        expect(won.filter(Boolean).length).toBe(1);
        await subject.pass(2 * TTL_MS);
      }
    });

    it('is re-entrant for the same epoch, and prolonged by that', async () => {
      expect(await subject.locks.tryLock('again', TTL_MS, a)).toBe(true);
      await subject.pass(TTL_MS / 2);
      expect(await subject.locks.tryLock('again', TTL_MS, a)).toBe(true);
      await subject.pass(TTL_MS / 2 + 1_000);
      expect(await subject.locks.tryLock('again', TTL_MS, b)).toBe(false);
    });

    it('takes a later or an earlier epoch of the same node for somebody else', async () => {
      const next: NodeRef = { ...a, epoch: '9' };
      for (const other of [next, { ...a, epoch: '-9' }]) {
        const name = `epoch ${other.epoch}`;
        expect(await subject.locks.tryLock(name, TTL_MS, a)).toBe(true);
        expect(await subject.locks.tryLock(name, TTL_MS, other)).toBe(false);
        expect(await subject.locks.renew(name, TTL_MS, other)).toBe(false);
        await subject.locks.release(name, other);
        expect(await subject.locks.renew(name, TTL_MS, a)).toBe(true);
        await subject.pass(TTL_MS + 1_000);
        expect(await subject.locks.tryLock(name, TTL_MS, other)).toBe(true);
        expect(await subject.locks.renew(name, TTL_MS, a)).toBe(false);
      }
    });

    it('knows nothing of the clock of this process', async () => {
      const now = Date.now;
      try {
        expect(await subject.locks.tryLock('skewed', TTL_MS, a)).toBe(true);
        for (const skewMs of [-10 * TTL_MS, 10 * TTL_MS]) {
          Date.now = () => now() + skewMs;
          expect(await subject.locks.tryLock('skewed', TTL_MS, b)).toBe(false);
          expect(await subject.locks.renew('skewed', TTL_MS, a)).toBe(true);
        }
        await subject.pass(TTL_MS + 1_000);
        expect(await subject.locks.tryLock('skewed', TTL_MS, b)).toBe(true);
      } finally {
        Date.now = now;
      }
    });

    it('is not there to be renewed before it was taken, nor after its release', async () => {
      expect(await subject.locks.renew('never', TTL_MS, a)).toBe(false);
      await subject.locks.release('never', a);
      expect(await subject.locks.tryLock('never', TTL_MS, a)).toBe(true);
      await subject.locks.release('never', a);
      expect(await subject.locks.renew('never', TTL_MS, a)).toBe(false);
    });

    it('is free again after a release by its holder', async () => {
      await subject.locks.tryLock('free', TTL_MS, a);
      await subject.locks.release('free', b);
      expect(await subject.locks.tryLock('free', TTL_MS, b)).toBe(false);
      await subject.locks.release('free', a);
      expect(await subject.locks.tryLock('free', TTL_MS, b)).toBe(true);
    });

    it('expires, and then cannot be renewed', async () => {
      await subject.locks.tryLock('short', TTL_MS, a);
      await subject.pass(TTL_MS / 2);
      expect(await subject.locks.renew('short', TTL_MS, a)).toBe(true);
      expect(await subject.locks.renew('short', TTL_MS, b)).toBe(false);
      await subject.pass(TTL_MS / 2 + 1_000);
      expect(await subject.locks.tryLock('short', TTL_MS, b)).toBe(false);
      await subject.pass(TTL_MS);
      expect(await subject.locks.renew('short', TTL_MS, a)).toBe(false);
      expect(await subject.locks.tryLock('short', TTL_MS, b)).toBe(true);
    });
  });
}
