import { parseArgs } from 'node:util';

/** What the command line says. `npm start -- --help` prints it. */
export class SampleOptions {
  constructor(
    /** Forget everything of earlier starts first. */
    readonly reset: boolean,
    /** How long the tax service takes to answer, in milliseconds: this is what makes the sample slow enough to be killed by hand. */
    readonly taxLatencyMs: number,
    /** Where the embedded PostgreSQL keeps its data. Not used with DATABASE_URL. */
    readonly dataDir: string,
    /** The CSV file to import. */
    readonly ordersFile: string,
    /** Where the invoices go. */
    readonly outputDir: string,
  ) {}
}

export const USAGE = `
npm start                  import the orders, build an invoice for each, show what happened
npm start -- --reset       the same, from the beginning
npm start -- --fast        without the pauses that make it slow enough to watch
npm start -- --orders FILE which orders to import (sample/data/orders.csv)
npm start -- --data DIR    where the embedded PostgreSQL keeps its data (.ratchet/sample)
npm start -- --output DIR  where the invoices go (sample/output)

DATABASE_URL=postgres://… uses your PostgreSQL. The sample stays inside two schemas of its own:
sample_shop and sample_ratchet.
`;

/** Undefined: the user asked for help. Throws on an unknown flag. */
export function readOptions(argv: readonly string[]): SampleOptions | undefined {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      reset: { type: 'boolean', default: false },
      fast: { type: 'boolean', default: false },
      orders: { type: 'string', default: 'sample/data/orders.csv' },
      data: { type: 'string', default: '.ratchet/sample' },
      output: { type: 'string', default: 'sample/output' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  return new SampleOptions(values.reset, values.fast ? 60 : 450, values.data, values.orders, values.output);
}
