/** Those who wait for something to be so. */
export class Waiters {
  #resolves: (() => void)[] = [];

  /** Resolves now, or when they are told. */
  wait(isSo: boolean): Promise<void> {
    return isSo ? Promise.resolve() : new Promise((resolve) => this.#resolves.push(resolve));
  }

  tell(): void {
    for (const resolve of this.#resolves.splice(0)) resolve();
  }
}
