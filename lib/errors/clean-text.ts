/**
 * A text that PostgreSQL takes, at most `maxBytes` long in UTF-8: NUL is removed, broken surrogates become U+FFFD, and what
 * was cut is said at the end. For texts that must not be lost because of one character; payloads are refused instead.
 */
export function cleanText(text: string, maxBytes = Number.POSITIVE_INFINITY): string {
  // Cut before cleaning: no character is shorter than a byte, and messages of many megabytes do occur.
  const short = text.length > maxBytes ? text.slice(0, maxBytes) : text;
  const clean = short.replaceAll('\0', '').replace(/\p{Cs}/gu, '\uFFFD');
  if (
    short.length === text.length &&
    (clean.length * 3 <= maxBytes || Buffer.byteLength(clean) <= maxBytes)
  ) {
    return clean;
  }
  const note = ` … (cut, ${text.length} characters)`;
  const room = maxBytes - Buffer.byteLength(note);
  if (room <= 0) return headOf(clean, maxBytes);
  return headOf(clean, room) + note;
}

/** The first bytes of a text, without the half of a character that may be left at the cut. */
function headOf(text: string, bytes: number): string {
  const head = Buffer.from(text).subarray(0, bytes).toString();
  return head.replace(/\uFFFD+$/, '');
}
