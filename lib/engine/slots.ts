/** Room for running executions. A slot is taken by a claim and free again when the handler's body has ended. */
export class Slots {
  #taken = 0;

  constructor(readonly capacity: number) {}

  get free(): number {
    return Math.max(0, this.capacity - this.#taken);
  }

  get taken(): number {
    return this.#taken;
  }

  /** An adopted claim may overfill: it has to run somewhere. */
  take(): void {
    this.#taken += 1;
  }

  giveBack(): void {
    this.#taken -= 1;
  }
}
