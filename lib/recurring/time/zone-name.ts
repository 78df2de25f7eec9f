import { nearest } from '../../errors/nearest.js';
import { InvalidTimeZoneError } from '../../errors/recurring-errors.js';

/** The names of three letters that IANA has; ICU knows more, and takes BST for Bangladesh and IST for India. */
const SHORT = new Set('CET EET EST GMT HST MET MST PRC ROC ROK UCT UTC WET'.split(' '));
const known = new Set<string>();

/**
 * The name of a time zone, in the letter case of the data. An alias stays what the user wrote: which of Asia/Kolkata and
 * Asia/Calcutta is the canonical one differs between versions of Node, and nodes of one cluster must store the same.
 *
 * @throws InvalidTimeZoneError - it is no zone, an offset, or an abbreviation.
 */
export function zoneName(value: unknown, owner: string): string {
  if (typeof value !== 'string') {
    throw new InvalidTimeZoneError(owner, value, 'is no IANA time zone; give a name such as "Europe/Lisbon"');
  }
  if (known.has(value)) return value;
  if (value.trim() === '') {
    throw new InvalidTimeZoneError(
      owner,
      value,
      'is empty; give an IANA time zone such as "Europe/Lisbon", or leave it out',
    );
  }
  if (/^(UTC|GMT)?[+-]\d/i.test(value) && !/^GMT[+-]0$/i.test(value)) throw offsetRefused(owner, value);
  if ((/^[a-z]{3}$/i.test(value) && !SHORT.has(value.toUpperCase())) || /^SystemV\//i.test(value)) {
    throw new InvalidTimeZoneError(
      owner,
      value,
      'is an abbreviation, which may mean several zones; give an IANA time zone such as "America/Los_Angeles"',
    );
  }
  const name = resolved(value);
  if (name === undefined) throw new InvalidTimeZoneError(owner, value, `is no IANA time zone${hint(value)}`);
  known.add(name);
  return name;
}

function resolved(value: string): string | undefined {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en-US', { timeZone: value }).resolvedOptions();
    return timeZone.toLowerCase() === value.toLowerCase() ? timeZone : value;
  } catch {
    return undefined;
  }
}

function offsetRefused(owner: string, value: string): InvalidTimeZoneError {
  const hours = /^(?:UTC|GMT)?([+-])0?(\d{1,2})(?::?00)?$/i.exec(value);
  // The signs of these names are turned round: Etc/GMT-2 is two hours ahead of Greenwich.
  const fixed = hours && `Etc/GMT${hours[1] === '+' ? '-' : '+'}${hours[2] ?? ''}`;
  const exists = fixed ? resolved(fixed) !== undefined : false;
  return new InvalidTimeZoneError(
    owner,
    value,
    'is an offset, which knows no daylight saving; give an IANA time zone such as "Europe/Lisbon"' +
      (exists ? `, or ${JSON.stringify(fixed)} for just that offset` : ''),
  );
}

function hint(value: string): string {
  // Names are shorter than that; comparing a longer text with each of them takes seconds.
  if (value.length > 50) return '; give a name such as "Europe/Lisbon"';
  const word = value.trim().replaceAll(' ', '_').toLowerCase();
  const names = Intl.supportedValuesOf('timeZone');
  const near = names.find((name) => name.toLowerCase().endsWith(`/${word}`)) ?? nearest(word, names);
  return near ? `; did you mean ${JSON.stringify(near)}?` : '; give a name such as "Europe/Lisbon"';
}
