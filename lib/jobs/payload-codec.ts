import { describeError } from '../errors/describe-error.js';
import { InvalidEnqueueOptionError } from '../errors/enqueue-errors.js';
import { PayloadNotJsonError, PayloadTooLargeError, PayloadUpcastError } from '../errors/payload-errors.js';
import { type JobDefinition } from './job-definition.js';
import { JsonFault, JsonTooLarge, JsonWriter } from './json-writer.js';
import { JOB_LIMITS } from './limits.js';
import { RECURRENCE_KEYS } from './recurrence.js';
import { validatePayload, validateStored } from './payload-schema.js';

export { cleanText } from '../errors/clean-text.js';

/**
 * The payload as the JSON text to store: its *input* form, checked by the definition's schema when there is one. What it
 * accepts comes back from PostgreSQL equal to what was given (`-0` as `0`; properties that are `undefined` are left out;
 * what somebody hid under a symbol that is not enumerable stays behind).
 *
 * @param root - what the payload is called in the paths of errors.
 * @throws PayloadInvalidError, PayloadNotJsonError (with the path), PayloadTooLargeError
 */
export async function encodePayload(
  definition: JobDefinition,
  value: unknown,
  maxBytes: number,
  root = 'payload',
): Promise<string> {
  const { name, schema } = definition;
  if (schema) await validatePayload(name, schema, value, root);
  const { text, changed } = write(definition, value, maxBytes, root);
  // What is checked at the run is the JSON form: a schema that only takes the original would fail every execution.
  if (schema && changed) await validateStored(name, schema, JSON.parse(text), root, STORED_HINT);
  return text;
}

/**
 * The same text at once, without asking the schema: for whoever cannot wait, and checks it later.
 *
 * @throws PayloadNotJsonError, PayloadTooLargeError
 */
export function payloadText(
  definition: JobDefinition,
  value: unknown,
  maxBytes: number,
  root = 'payload',
): string {
  return write(definition, value, maxBytes, root).text;
}

function write(
  { name, schema }: JobDefinition,
  value: unknown,
  maxBytes: number,
  root: string,
): { readonly text: string; readonly changed: boolean } {
  // A job without a payload: JSON has no undefined.
  if (value === undefined) return { text: 'null', changed: false };
  const writer = new JsonWriter(schema ? 'schema' : 'strict', root, maxBytes);
  const text = refusing(name, maxBytes, root, () => writer.write(value));
  return { text, changed: writer.changed };
}

const STORED_HINT =
  ' (in the JSON form in which it is stored, though not as it was given; let the schema take that form: for a Date z.coerce.date(), or @Type(() => Date) in a class)';

/**
 * What the handler receives: the schema's *output* for the stored payload, after the definition's `upcast` when an older
 * version stored it. What `upcast` returns need not be JSON: the schema decides, and without one the handler gets it as it is.
 *
 * @throws PayloadInvalidError, PayloadUpcastError
 */
export async function decodePayload(
  definition: JobDefinition,
  stored: unknown,
  version: number,
): Promise<unknown> {
  const { name, schema } = definition;
  const older = version < definition.version;
  const current = older ? await upcast(definition, stored, version) : stored;
  if (!schema) return current;
  return validateStored(name, schema, current, 'payload', older ? olderHint(definition, version) : '');
}

/** What somebody who reads of a refusal in the dead letter cannot see: another shape than today's was stored. */
function olderHint(definition: JobDefinition, version: number): string {
  const how = definition.upcast ? 'after upcast' : 'there is no upcast';
  return ` (stored by version ${version}, read by version ${definition.version}, ${how})`;
}

async function upcast(definition: JobDefinition, stored: unknown, fromVersion: number): Promise<unknown> {
  if (!definition.upcast) return stored;
  try {
    return await definition.upcast(stored, fromVersion);
  } catch (error) {
    const { message } = describeError(error);
    throw new PayloadUpcastError(definition.name, fromVersion, definition.version, message, { cause: error });
  }
}

/**
 * The `metadata` option as JSON text; `undefined` for none.
 *
 * @param option - its path in the call.
 * @throws InvalidEnqueueOptionError
 */
export function encodeMetadata(jobName: string, value: unknown, option = 'metadata'): string | undefined {
  if (value === undefined) return undefined;
  requireUnreserved(jobName, value, option);
  try {
    return new JsonWriter('strict', option, JOB_LIMITS.metadataBytes).write(value);
  } catch (error) {
    if (error instanceof JsonTooLarge) {
      throw new InvalidEnqueueOptionError(
        jobName,
        option,
        value,
        `at most ${JOB_LIMITS.metadataBytes} bytes of JSON`,
      );
    }
    if (!(error instanceof JsonFault)) throw error;
    throw new InvalidEnqueueOptionError(jobName, option, value, `JSON, but ${error.message}`);
  }
}

/** A job that claims to be an occurrence would hold up the schedule that it names. */
function requireUnreserved(jobName: string, value: unknown, option: string): void {
  if (typeof value !== 'object' || value === null) return;
  const reserved = Object.values(RECURRENCE_KEYS).find((key) => Object.hasOwn(value, key));
  if (reserved === undefined) return;
  throw new InvalidEnqueueOptionError(
    jobName,
    `${option}["${reserved}"]`,
    (value as Readonly<Record<string, unknown>>)[reserved],
    'no such key: it is reserved for the jobs of recurring schedules; leave it out when you pass on the metadata of one',
  );
}

/** JSON text that a database takes, whatever the value was, and what had to be given up for it. */
export interface CleanJson {
  readonly text: string;
  /** Says that the value was replaced, and why; for a warning. */
  readonly replaced?: string;
}

/**
 * A handler's result as JSON text; `undefined` for none. Never throws: a job that is done must not fail because of what it
 * returned. NUL is removed, broken surrogates become U+FFFD, a bigint its digits, a `Map` its entries, a cycle
 * `"[circular]"`; what is too large becomes a small marker object.
 */
export function encodeResult(value: unknown, maxBytes: number): CleanJson | undefined {
  return value === undefined ? undefined : clean('result', value, maxBytes);
}

/** Why {@link encodeResult} put its marker in the place of a result; `undefined` for a result that was kept. */
export function whyNotKept(result: unknown): string | undefined {
  if (typeof result !== 'object' || result === null) return undefined;
  const { ratchet, reason, ...rest } = result as Readonly<Record<string, unknown>>;
  const isMarker = ratchet === notKept('result') && typeof reason === 'string';
  return isMarker && Object.keys(rest).length === 0 ? reason : undefined;
}

function notKept(what: string): string {
  return `the ${what} was not kept`;
}

/** A `ctx.progress()` value as JSON text, cleaned as results are. Never throws. */
export function encodeProgress(value: unknown): CleanJson {
  return clean('progress', value, JOB_LIMITS.progressBytes);
}

function clean(what: string, value: unknown, maxBytes: number): CleanJson {
  try {
    return { text: new JsonWriter('clean', what, maxBytes).write(value) };
  } catch (error) {
    const replaced =
      error instanceof JsonTooLarge
        ? `larger than ${maxBytes} bytes`
        : `not readable: ${describeError(error).message}`;
    const marker = { ratchet: notKept(what), reason: replaced.slice(0, 300) };
    return { text: new JsonWriter('clean', what, Number.POSITIVE_INFINITY).write(marker), replaced };
  }
}

function refusing(jobName: string, maxBytes: number, root: string, write: () => string): string {
  try {
    return write();
  } catch (error) {
    if (error instanceof JsonTooLarge) throw new PayloadTooLargeError(jobName, maxBytes, root);
    if (!(error instanceof JsonFault)) throw error;
    throw new PayloadNotJsonError(jobName, error.path, error.problem, { cause: error.cause });
  }
}
