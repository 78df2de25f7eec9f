import fc from 'fast-check';

const number = (min: number, max: number) => fc.integer({ min, max }).map(String);
const list = (min: number, max: number) =>
  fc
    .uniqueArray(fc.integer({ min, max }), { minLength: 2, maxLength: 4 })
    .map((values) => values.toSorted((a, b) => a - b).join(','));
const range = (min: number, max: number) =>
  fc
    .tuple(fc.integer({ min, max }), fc.integer({ min, max }))
    .map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
const stepped = (base: fc.Arbitrary<string>, widths: readonly number[]) =>
  fc.tuple(base, fc.constantFrom(...widths)).map(([from, width]) => `${from}/${width}`);

const minute = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom('*', '0', '30', '15', '45', '15,45', '0,30') },
  { weight: 2, arbitrary: stepped(fc.constant('*'), [2, 5, 7, 10, 15, 20, 25, 30, 45]) },
  number(0, 59),
  list(0, 59),
  range(0, 59),
  stepped(range(0, 59), [1, 3, 10]),
  stepped(number(0, 29), [15, 20]),
);
const hour = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('*', '*/1', '0-23') },
  // Most clocks change between 22:00 and 04:00.
  { weight: 4, arbitrary: number(0, 4) },
  number(0, 23),
  fc.constantFrom('22-23', '23', '1-3', '0-4', '*/2', '1-23/2', '0,2,3'),
  list(0, 23),
  range(0, 23),
);

/** Expressions of five fields, whose day fields are about a given day, so that they match now and then. */
export function expressionAbout(day: Date): fc.Arbitrary<string> {
  const [date, month, weekday] = [day.getUTCDate(), day.getUTCMonth() + 1, day.getUTCDay()];
  const near = [date, Math.max(1, date - 1), Math.min(28, date + 1)].map(String);
  const dates = fc.oneof(
    { weight: 6, arbitrary: fc.constant('*') },
    fc.constantFrom(...near, 'L', '1', '?', `${Math.max(1, date - 1)}-${date}`),
    range(1, 31),
    stepped(fc.constant('*'), [2, 3]),
  );
  const months = fc.oneof(
    { weight: 8, arbitrary: fc.constant('*') },
    fc.constantFrom(String(month), 'JAN-JUN', 'JUL-DEC', '*/2', `${month}-12`),
  );
  const weekdays = fc.oneof(
    { weight: 6, arbitrary: fc.constant('*') },
    fc.constantFrom(String(weekday), String((weekday + 6) % 7), String((weekday + 1) % 7)),
    fc.constantFrom('?', 'MON-FRI', 'SAT', 'SUN', '7', '5-7', '*/2', '0#1', '6#5', `${weekday}#2`),
    fc.constantFrom(`${weekday}L`, '5L', '7L,1', '1L,3L'),
  );
  return fc.tuple(minute, hour, dates, months, weekdays).map((fields) => fields.join(' '));
}

/** Six fields: a seconds field before them. */
export function withSeconds(expression: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const second = fc.oneof(fc.constantFrom('0', '*', '*/15', '*/7', '30', '59'), number(0, 59), list(0, 59));
  return fc.tuple(second, expression).map((fields) => fields.join(' '));
}
