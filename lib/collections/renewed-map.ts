/** Until a map has had so many deletions beyond twice its size, it is not worth a copy. */
const SPARED = 64;

/**
 * A map for entries that come and go without end. When V8 makes a map's table anew, because of what was deleted from it, the old table
 * keeps its entries and points to the new one. Once one such table has become old in the sense of the garbage collector, each later
 * one is held by it, with all that it contained, until the next full collection (`node --trace-gc` shows it, where much is deleted from a
 * `Map` that never gets empty). A copy has a table that no other points to. What that is worth: `npm run bench -- --only drain24`.
 *
 * Nothing may be deleted while it is walked through, but what has been reached.
 */
export class RenewedMap<K, V> {
  #map = new Map<K, V>();
  #deletions = 0;

  get size(): number {
    return this.#map.size;
  }

  get(key: K): V | undefined {
    return this.#map.get(key);
  }

  has(key: K): boolean {
    return this.#map.has(key);
  }

  set(key: K, value: V): void {
    this.#map.set(key, value);
  }

  delete(key: K): boolean {
    if (!this.#map.delete(key)) return false;
    this.#deletions += 1;
    if (this.#deletions > SPARED + 2 * this.#map.size) {
      this.#map = new Map(this.#map);
      this.#deletions = 0;
    }
    return true;
  }

  values(): IterableIterator<V> {
    return this.#map.values();
  }
}
