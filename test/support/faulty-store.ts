import { type JobStore } from '../../lib/store/job-store.js';
import { StoreError, type StoreFaultKind } from '../../lib/store/store-fault.js';

type Method = Exclude<keyof JobStore, 'travel'>;

/** `before`: the statement is not sent. `after`: it was carried out, and its reply is lost. */
export interface Fault {
  readonly kind: StoreFaultKind;
  readonly when: 'before' | 'after';
}

/** A real store whose methods fail when a test says so. */
export interface FaultyStore {
  readonly store: JobStore;
  /** The next calls of that method fail, one fault each. Resolves when the last of them has struck. */
  fail(method: Method, ...faults: Fault[]): Promise<void>;
  /** Every call of every method fails until the returned function is called. */
  failAll(kind: StoreFaultKind): () => void;
  /** Calls so far. */
  calls(method: Method): number;
}

export function faultyStore(real: JobStore): FaultyStore {
  const faults = new Map<Method, { fault: Fault; struck: () => void }[]>();
  const calls = new Map<Method, number>();
  let down: StoreFaultKind | undefined;
  const error = (method: Method, kind: StoreFaultKind): StoreError =>
    new StoreError(kind, `STORE_FAULT: ${method}: made by a test`, 'TEST1');
  const store = new Proxy(real, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== 'function') return value;
      const method = key as Method;
      if (method === 'close' || key === 'travel') return value.bind(target) as unknown;
      return async (...given: unknown[]): Promise<unknown> => {
        calls.set(method, (calls.get(method) ?? 0) + 1);
        if (down) throw error(method, down);
        const next = faults.get(method)?.shift();
        if (next?.fault.when === 'before') {
          next.struck();
          throw error(method, next.fault.kind);
        }
        const answer: unknown = await (value as (...args: unknown[]) => Promise<unknown>).apply(
          target,
          given,
        );
        if (!next) return answer;
        next.struck();
        throw error(method, next.fault.kind);
      };
    },
  });
  return {
    store,
    async fail(method, ...given) {
      const queue = faults.get(method) ?? [];
      faults.set(method, queue);
      await Promise.all(given.map((fault) => new Promise<void>((struck) => queue.push({ fault, struck }))));
    },
    failAll(kind) {
      down = kind;
      return () => (down = undefined);
    },
    calls: (method) => calls.get(method) ?? 0,
  };
}
