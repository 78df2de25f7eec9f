import { InvalidOptionError, type OptionProblem } from './errors/boot-errors.js';
import { type RatchetExtras } from './ratchet.extras.js';
import { OptionReader, isPlainObject } from './ratchet.option-reader.js';
import { PORT_TOKENS } from './ratchet.ports.js';

const PORT_WORDS = 'a class, or one of { useClass }, { useFactory }, { useValue }, { useExisting }';

/**
 * Checks what Nest builds the module graph of: it would refuse these in its own words, which do not name the option.
 *
 * @throws InvalidOptionError with everything that is wrong.
 */
export function checkExtras(extras: RatchetExtras): void {
  const problems: OptionProblem[] = [];
  const reader = new OptionReader({ ...extras }, problems);
  reader.flag('isGlobal', true);
  for (const key of ['imports', 'extraProviders']) {
    if (reader.has(key) && !Array.isArray(reader.peek(key))) reader.wrong(key, 'an array');
  }
  for (const port of Object.keys(PORT_TOKENS)) {
    if (reader.has(port) && !isProvider(reader.peek(port))) reader.wrong(port, PORT_WORDS);
  }
  if (problems.length > 0) throw new InvalidOptionError(problems);
}

function isProvider(value: unknown): boolean {
  if (typeof value === 'function') return true;
  if (!isPlainObject(value)) return false;
  const given = ['useClass', 'useFactory', 'useValue', 'useExisting'].filter((key) => isGiven(value[key]));
  if (given.length !== 1) return false;
  return (['useClass', 'useFactory'] as const).every(
    (key) => !isGiven(value[key]) || typeof value[key] === 'function',
  );
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
