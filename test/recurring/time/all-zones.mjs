/**
 * `npm run test:zones -- [--from 2021] [--until 2031] [--expressions 40] [--seed 1]`: `next` against the slow oracle, over three
 * days around every clock change of every distinct history of offsets (minute by minute), and over four hours around it second by
 * second. Prints its figures; exit code 1 on the first disagreement of each window.
 */
import fc from 'fast-check';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { compileFolder } from '../../support/compile.mjs';

const { values } = parseArgs({
  options: {
    from: { type: 'string', default: '2021' },
    until: { type: 'string', default: '2031' },
    expressions: { type: 'string', default: '40' },
    seed: { type: 'string', default: '1' },
  },
});
const [from, until, numRuns, seed] = [values.from, values.until, values.expressions, values.seed].map(Number);

const root = fileURLToPath(new URL('../../..', import.meta.url));
const compiled = join(root, '.ratchet', `test-zones-${process.pid}`);
process.on('exit', () => rmSync(compiled, { recursive: true, force: true }));
compileFolder(join(root, 'lib'), join(compiled, 'lib'));
compileFolder(join(root, 'test/recurring/time'), join(compiled, 'test/recurring/time'));
const load = (path) => import(pathToFileURL(join(compiled, path)).href);
const { parseRule } = await load('lib/recurring/time/recurrence-rule.js');
const { SlowOracle } = await load('test/recurring/time/slow-oracle.js');
const { distinctHistories } = await load('test/recurring/time/transitions.js');
const { expressionAbout, withSeconds } = await load('test/recurring/time/expressions.js');
const { disagreement } = await load('test/recurring/time/agreement.js');

const HOUR = 3_600_000;
const started = performance.now();
const zones = Intl.supportedValuesOf('timeZone');
const histories = distinctHistories(zones, from, until);
const totals = { transitions: 0, windows: 0, comparisons: 0, occurrences: 0, disagreements: 0 };

/** Of what is refused because it never occurs, the oracle must know no occurrence either. */
function ruleOf(expression, zone) {
  try {
    return parseRule(expression, zone, { hashSeed: 'zones' });
  } catch (error) {
    if (!error.message.includes('never occurs')) throw error;
    return { next: () => undefined };
  }
}

function compare(oracle, arbitrary, count) {
  totals.windows += 1;
  for (const expression of fc.sample(arbitrary, { numRuns: count, seed: seed + totals.windows })) {
    totals.comparisons += 1;
    totals.occurrences += oracle.occurrences(expression).length;
    const difference = disagreement(oracle, expression, ruleOf(expression, oracle.zone));
    if (!difference) continue;
    totals.disagreements += 1;
    process.stdout.write(`${difference}\n`);
    return;
  }
}

for (const { zone, transitions } of histories) {
  for (const { at } of transitions) {
    totals.transitions += 1;
    const minute = Math.floor(at / 60_000) * 60_000;
    const about = expressionAbout(new Date(at));
    compare(new SlowOracle(zone, minute - 36 * HOUR, minute + 36 * HOUR), about, numRuns);
    const seconds = new SlowOracle(zone, minute - 2 * HOUR, minute + 2 * HOUR, 1_000);
    compare(seconds, withSeconds(about), Math.ceil(numRuns / 4));
  }
}
const took = ((performance.now() - started) / 1_000).toFixed(0);
process.stdout.write(
  `${zones.length} zones, ${histories.length} distinct histories from ${from} to ${until}, ${totals.transitions} clock changes: ` +
    `${totals.comparisons} comparisons over ${totals.windows} windows, ${totals.occurrences} occurrences, ` +
    `${totals.disagreements} disagreements, ${took} s (tz data ${process.versions.tz}, seed ${seed})\n`,
);
process.exitCode = totals.disagreements > 0 ? 1 : 0;
