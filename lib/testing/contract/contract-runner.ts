/** What the contract suites need of a test runner: jest and vitest (with `globals`) have it on `globalThis`. */
export interface ContractRunner {
  readonly describe: (name: string, body: () => void) => void;
  readonly it: (name: string, body: () => Promise<void>) => void;
  readonly beforeAll: (body: () => Promise<void>) => void;
  readonly afterAll: (body: () => Promise<void>) => void;
  readonly expect: (actual: unknown) => ContractExpectation;
}

export interface ContractExpectation {
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
  toMatchObject(expected: object): void;
}

/** The runner that executes the calling file. */
export function contractRunner(): ContractRunner {
  const runner = globalThis as unknown as Partial<ContractRunner>;
  for (const name of ['describe', 'it', 'beforeAll', 'afterAll', 'expect'] as const) {
    if (typeof runner[name] !== 'function') {
      throw new TypeError(
        `A contract suite needs the global "${name}" of a test runner; run it in jest, or in vitest with globals: true`,
      );
    }
  }
  return runner as ContractRunner;
}
