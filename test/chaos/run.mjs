/**
 * `npm run test:chaos -- --minutes N [--seed S] [--nodes K]`: the mix of mix.spec.ts for longer, on an embedded server of its own, or on
 * RATCHET_TEST_DATABASE_URL, which is not restarted then. Prints the seed and the verdict; exit code 1 on a bad one.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { minutes: { type: 'string' }, seed: { type: 'string' }, nodes: { type: 'string' } },
});
const number = (name, fallback) => {
  const value = Number(values[name] ?? fallback);
  if (Number.isFinite(value) && value > 0) return value;
  process.stderr.write(`--${name} ${values[name]}: a number above 0\n`);
  process.exit(2);
};
const seconds = 60 * number('minutes', 1);
const seed = Math.floor(number('seed', 1 + Math.floor(Math.random() * 1_000_000)));
const nodes = Math.floor(number('nodes', 3));

const root = fileURLToPath(new URL('../..', import.meta.url));
const jest = spawn(
  process.execPath,
  [
    ...[
      '--experimental-vm-modules',
      '--disable-warning=ExperimentalWarning',
      'node_modules/jest/bin/jest.js',
    ],
    ...['--runInBand', 'test/chaos/mix.spec.ts'],
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      RATCHET_CHAOS_SECONDS: String(seconds),
      RATCHET_CHAOS_SEED: String(seed),
      RATCHET_CHAOS_NODES: String(nodes),
      RATCHET_CHAOS_OWN_SERVER: process.env.RATCHET_TEST_DATABASE_URL ? '0' : '1',
    },
  },
);
jest.on('exit', (code) => process.exit(code ?? 1));
