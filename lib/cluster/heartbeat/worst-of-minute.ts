const SLICE_MS = 10_000;
const SLICES = 6;

/** The largest of the values of the last minute, to the nearest ten seconds. */
export class WorstOfMinute {
  readonly #slices: { number: number; worst: number }[] = [];

  note(nowMs: number, value: number): void {
    const number = Math.floor(nowMs / SLICE_MS);
    const last = this.#slices.at(-1);
    if (last?.number === number) last.worst = Math.max(last.worst, value);
    else this.#slices.push({ number, worst: value });
    if (this.#slices.length > SLICES) this.#slices.shift();
  }

  worst(nowMs: number): number {
    const first = Math.floor(nowMs / SLICE_MS) - SLICES + 1;
    return this.#slices.reduce(
      (worst, slice) => (slice.number < first ? worst : Math.max(worst, slice.worst)),
      0,
    );
  }
}
