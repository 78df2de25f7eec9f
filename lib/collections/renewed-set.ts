import { RenewedMap } from './renewed-map.js';

/** A set for what comes and goes without end, for the reason that {@link RenewedMap} has, and under the same condition. */
export class RenewedSet<T> implements Iterable<T> {
  readonly #members = new RenewedMap<T, T>();

  get size(): number {
    return this.#members.size;
  }

  has(member: T): boolean {
    return this.#members.has(member);
  }

  add(member: T): void {
    this.#members.set(member, member);
  }

  delete(member: T): boolean {
    return this.#members.delete(member);
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#members.values();
  }
}
