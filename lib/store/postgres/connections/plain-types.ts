import pg from 'pg';

const number = (text: string): number => Number(text);

/** A PostgreSQL `text[]` literal as strings. */
function textArray(text: string): string[] {
  const parser = pg.types.arrayParser as unknown as {
    create(source: string, transform: (item: string) => string): { parse(): string[] };
  };
  return parser.create(text, (item) => item).parse();
}

const PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  16: (text) => text === 't',
  21: number,
  23: number,
  26: number,
  700: number,
  701: number,
  114: JSON.parse,
  3802: JSON.parse,
  1009: textArray,
  2951: textArray,
};

/**
 * The type parsers of our own connections: an application may have changed pg's global ones (int8 as number, timestamps
 * as text), which must not change what the engine reads. bigint, uuid and timestamps stay text.
 */
export const plainTypes = {
  getTypeParser(oid: number) {
    return PARSERS[oid] ?? String;
  },
};
