import { expect, it } from '@jest/globals';
import { ChaosFixture } from './chaos-fixture.js';
import { tell } from './history-checker.js';
import { Mix } from './mix.js';
import { OwnServer } from './own-server.js';

/**
 * A short mix with a seed of its own each time; `npm run test:chaos` makes longer ones, on a server of their own that is restarted
 * too (run.mjs).
 */
const { RATCHET_CHAOS_SECONDS, RATCHET_CHAOS_SEED, RATCHET_CHAOS_NODES } = process.env;
const long = RATCHET_CHAOS_SECONDS !== undefined;
const seconds = Number(RATCHET_CHAOS_SECONDS ?? 10);
const seed = Number(RATCHET_CHAOS_SEED ?? Math.floor(Math.random() * 1_000_000));
const nodes = Number(RATCHET_CHAOS_NODES ?? 3);

// A database that somebody else gave us is not stopped.
const server = long && process.env['RATCHET_CHAOS_OWN_SERVER'] === '1' ? new OwnServer() : undefined;
const chaos = new ChaosFixture('mix', [], server);
const say = (line: string): void => {
  if (long) process.stdout.write(`${line}\n`);
};

it(
  'a mix of everything, under load: the checker finds nothing',
  async () => {
    say(`seed ${String(seed)}, ${String(nodes)} nodes, ${String(seconds)} s`);
    const { findings, summary } = await new Mix(chaos, {
      seed,
      nodes,
      ms: seconds * 1_000,
      server,
      say,
    }).run();
    say(`seed ${String(seed)}: ${JSON.stringify(summary)}`);
    say(tell(findings));
    expect({ seed, verdict: tell(findings) }).toEqual({ seed, verdict: 'verdict: good' });
  },
  seconds * 1_000 + 300_000,
);
