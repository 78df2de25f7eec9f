import { showValue } from './show-value.js';

/** What is known of anything that was thrown. */
export interface ErrorDescription {
  /** `TypeError`; for what is no error, its type: `string`, `null`. */
  readonly name: string;
  readonly message: string;
  readonly code: string | undefined;
  readonly stack: string | undefined;
}

/** Longer messages and stacks are somebody's data; nobody reads them, and copies of them are expensive. */
const LONGEST = 20_000;

/**
 * The one place that reads what was thrown. Never throws, whatever it is given: `null`, objects whose getters throw,
 * revoked proxies, errors of another realm (hence no `instanceof`), messages of many megabytes.
 */
export function describeError(error: unknown): ErrorDescription {
  if ((typeof error !== 'object' && typeof error !== 'function') || error === null) {
    const name = error === null ? 'null' : typeof error;
    const message =
      typeof error === 'string' ? shorten(error) : `${showValue(error)} was thrown, which is no Error`;
    return { name, message, code: undefined, stack: undefined };
  }
  const stack = readText(error, 'stack');
  const code = read(error, 'code');
  return {
    name: readText(error, 'name') ?? readText(read(error, 'constructor'), 'name') ?? 'Error',
    message:
      readText(error, 'message') ??
      (stack === undefined ? showValue(error, 200) : 'an error without a message'),
    code: typeof code === 'string' || typeof code === 'number' ? shorten(String(code)) : undefined,
    stack,
  };
}

/** What is worth keeping of an error: its stack, then in brief the errors behind it (`cause`, `AggregateError`). */
export function errorText(error: unknown): string {
  const { name, message, code, stack } = describeError(error);
  const headline = `${name}: ${message}`;
  // A stack is made when the error is: a message that was changed later is not in it.
  const head = stack === undefined ? headline : stack.includes(message) ? stack : `${headline}\n${stack}`;
  const lines = [code === undefined || head.includes(code) ? head : `[${code}] ${head}`];
  const seen = new Set<unknown>([error]);
  let cause = read(error, 'cause');
  for (let depth = 0; depth < 5 && cause !== undefined && !seen.has(cause); depth++) {
    seen.add(cause);
    lines.push(`caused by ${briefly(cause)}`);
    cause = read(cause, 'cause');
  }
  const errors = read(error, 'errors');
  if (Array.isArray(errors)) {
    for (const inner of errors.slice(0, 5) as unknown[]) lines.push(`  holds ${briefly(inner)}`);
    if (errors.length > 5) lines.push(`  and ${errors.length - 5} more`);
  }
  return lines.join('\n');
}

function briefly(error: unknown): string {
  const { name, message, code } = describeError(error);
  return `${name}: ${message.slice(0, 500)}${code === undefined || message.includes(code) ? '' : ` [${code}]`}`;
}

function read(from: unknown, key: string): unknown {
  if ((typeof from !== 'object' && typeof from !== 'function') || from === null) return undefined;
  try {
    return (from as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}

function readText(from: unknown, key: string): string | undefined {
  const value = read(from, key);
  return typeof value === 'string' && value !== '' ? shorten(value) : undefined;
}

function shorten(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} … (cut, ${text.length} characters)` : text;
}
