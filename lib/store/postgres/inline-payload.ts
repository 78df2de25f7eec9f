/** Payloads of more bytes of JSON are written once, to a table of their own, and never move. */
export const INLINE_PAYLOAD_BYTES = 1_000;
