/** Cursors of another form may follow: what is read back says which it is. */
const FORM = 1;
const LENGTH = 17;

/** The place behind a job, as opaque text that fits in a URL. */
export function cursorBehind(id: string): string {
  return Buffer.from([FORM, ...Buffer.from(id.replaceAll('-', ''), 'hex')]).toString('base64url');
}

/** The id of the job that a cursor stands behind; `undefined` for what is none. */
export function idOfCursor(cursor: unknown): string | undefined {
  if (typeof cursor !== 'string') return undefined;
  const bytes = Buffer.from(cursor, 'base64url');
  // What Buffer does not understand it skips: only what it would write itself was understood.
  if (bytes.length !== LENGTH || bytes[0] !== FORM || bytes.toString('base64url') !== cursor)
    return undefined;
  return bytes
    .subarray(1)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
