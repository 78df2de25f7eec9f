import { types } from 'node:util';
import { describeError } from '../errors/describe-error.js';
import { isStorableText } from './limits.js';

/**
 * What becomes of values that JSON or PostgreSQL would refuse or change:
 * `strict` refuses all of them; `schema` lets through what has a JSON form of its own (dates, class instances), because the
 * schema is asked again about that form; `clean` refuses nothing and keeps what can be kept.
 */
export type WriterMode = 'strict' | 'schema' | 'clean';

/** Where a value cannot be written, and why. Internal: the codec makes a named error of it. */
export class JsonFault extends Error {
  constructor(
    readonly path: string,
    readonly problem: string,
    options?: { cause?: unknown },
  ) {
    super(`${path} ${problem}`, options);
  }
}

/** The text would be longer than allowed. Internal. */
export class JsonTooLarge extends Error {}

/** Deeper values are refused: PostgreSQL's own limit is its stack, some thousands of levels on a default server. */
const MAX_DEPTH = 1_000;

/**
 * Writes one value as JSON text, reading each property once (a getter may answer differently the second time), and knows
 * the path of what it refuses. Stops as soon as the text is too long, so that neither a huge graph nor an object that is
 * reached over many ways can hold the process. Use one for one value.
 */
export class JsonWriter {
  /** The text differs from the value in something that a schema may care about. */
  changed = false;
  #out = '';
  readonly #path: (string | number)[] = [];
  readonly #ancestors: object[] = [];

  constructor(
    private readonly mode: WriterMode,
    private readonly root: string,
    private readonly maxBytes: number,
  ) {}

  /** @throws JsonFault, JsonTooLarge */
  write(value: unknown): string {
    try {
      this.#value(value);
    } catch (error) {
      if (error instanceof JsonFault || error instanceof JsonTooLarge) throw error;
      throw new JsonFault(this.#here(), `cannot be read: ${describeError(error).message.slice(0, 300)}`, {
        cause: error,
      });
    }
    if (this.#out.length * 3 > this.maxBytes && Buffer.byteLength(this.#out) > this.maxBytes)
      throw new JsonTooLarge();
    return this.#out;
  }

  #value(value: unknown): void {
    switch (typeof value) {
      case 'string':
        this.#emit(this.#text(value));
        return;
      case 'number':
        if (Number.isFinite(value)) this.#emit(JSON.stringify(value));
        else this.#odd(`is ${String(value)}, which JSON would turn into null`, 'null');
        return;
      case 'boolean':
        this.#emit(value ? 'true' : 'false');
        return;
      case 'bigint':
        this.#odd('is a bigint, which JSON cannot hold; pass a text', `"${String(value)}"`);
        return;
      case 'undefined':
        this.#odd('is undefined, which JSON would turn into null', 'null');
        return;
      case 'function':
      case 'symbol':
        this.#odd(`is a ${typeof value}, which JSON leaves out`, 'null');
        return;
      default:
        if (value === null) this.#emit('null');
        else this.#composite(value as object);
    }
  }

  #composite(value: object): void {
    const depth = this.#ancestors.length;
    if (depth >= MAX_DEPTH) {
      this.#odd(`lies deeper than ${MAX_DEPTH} levels`, '"[too deep]"');
      return;
    }
    const again = this.#ancestors.indexOf(value);
    if (again >= 0) {
      this.#odd(`refers back to ${this.#here(again)}, which has no end in JSON`, '"[circular]"');
      return;
    }
    this.#ancestors.push(value);
    if (Array.isArray(value)) this.#arrayItself(value);
    else if (this.#isPlain(value)) this.#object(value);
    else this.#instance(value);
    this.#ancestors.pop();
  }

  #arrayItself(value: readonly unknown[]): void {
    if (this.mode === 'clean') {
      if (typeof this.#read(value, 'toJSON') === 'function') this.#ownForm(value);
      else this.#array(value);
      return;
    }
    // A hole is refused anyway, so further keys can only be properties beside the items.
    const own = Reflect.ownKeys(value);
    if (own.length > value.length + 1) {
      const beside = own.slice(value.length).find((key) => key !== 'length');
      this.#lost(value, beside);
    }
    this.#array(value);
  }

  #array(items: readonly unknown[]): void {
    this.#emit('[');
    for (let index = 0; index < items.length; index++) {
      if (index > 0) this.#emit(',');
      this.#path.push(index);
      this.#value(this.#read(items, index));
      this.#path.pop();
    }
    this.#emit(']');
  }

  #object(value: object): void {
    this.#emit('{');
    let separator = '';
    const keys = Object.keys(value);
    for (const key of keys) {
      this.#path.push(key);
      const item = this.#read(value, key);
      if (item === undefined) {
        this.changed = true;
      } else if (this.mode !== 'clean' || (typeof item !== 'function' && typeof item !== 'symbol')) {
        this.#emit(`${separator}${this.#text(key)}:`);
        this.#value(item);
        separator = ',';
      }
      this.#path.pop();
    }
    if (this.mode !== 'clean') this.#lost(value, leftOut(value, keys));
    this.#emit('}');
  }

  /** A property that the text does not hold; `undefined` for none. */
  #lost(value: object, key: PropertyKey | undefined): void {
    if (key === undefined) return;
    this.changed = true;
    if (this.mode !== 'strict') return;
    const shown = pathText('', [key]);
    const why = typeof key === 'symbol' ? 'a symbol' : Array.isArray(value) ? 'no index' : 'not enumerable';
    this.#odd(`has a property ${shown} that is ${why}, which JSON leaves out`, '');
  }

  /** Whatever has a prototype of its own. */
  #instance(value: object): void {
    if (this.mode === 'clean') {
      this.#cleanInstance(value);
      return;
    }
    const kind = kindOf(value);
    if (
      NO_JSON_FORM.has(kind) ||
      types.isBoxedPrimitive(value) ||
      (types.isTypedArray(value) && kind !== 'Buffer')
    ) {
      this.#odd(`is a ${kind}, which JSON would change; ${MENDS[kind] ?? 'pass plain data'}`, 'null');
    }
    if (this.mode === 'strict') {
      this.#odd(
        `is an instance of ${kind}; ${MENDS[kind] ?? 'pass a plain object, or use a schema'}`,
        'null',
      );
    }
    this.changed = true;
    this.#ownForm(value);
  }

  #cleanInstance(value: object): void {
    if (types.isMap(value)) this.#array([...value]);
    else if (types.isSet(value)) this.#array([...value]);
    else if (types.isBoxedPrimitive(value)) this.#value(this.#guarded(() => value.valueOf()));
    else if (types.isNativeError(value)) {
      const { name, message } = describeError(value);
      this.#object({ name, message });
    } else this.#ownForm(value);
  }

  #ownForm(value: object): void {
    const toJson = this.#read(value, 'toJSON');
    if (typeof toJson === 'function') {
      const key = String(this.#path.at(-1) ?? '');
      this.#value(this.#guarded(() => (toJson as (key: string) => unknown).call(value, key)));
    } else this.#object(value);
  }

  #isPlain(value: object): boolean {
    const prototype: unknown = Object.getPrototypeOf(value);
    // Not compared with Object.prototype: objects of another realm (jest, vm) are plain too.
    const plain = prototype === null || Object.getPrototypeOf(prototype) === null;
    if (!plain || types.isNativeError(value) || types.isArgumentsObject(value)) return false;
    if (typeof this.#read(value, 'toJSON') !== 'function') return true;
    if (this.mode === 'strict') this.#odd('has a toJSON method, which would change it', 'null');
    return false;
  }

  #text(text: string): string {
    if (isStorableText(text)) return JSON.stringify(text);
    if (this.mode !== 'clean') {
      const fault = text.includes('\0') ? 'a NUL character' : 'half of a surrogate pair';
      this.#odd(`holds ${fault}, which PostgreSQL cannot store`, '');
    }
    return JSON.stringify(text.replaceAll('\0', '').replace(/\p{Cs}/gu, '\uFFFD'));
  }

  #read(from: object, key: string | number): unknown {
    return this.#guarded(() => (from as Record<string | number, unknown>)[key]);
  }

  #guarded(read: () => unknown): unknown {
    if (this.mode !== 'clean') return read();
    try {
      return read();
    } catch (error) {
      return `[threw: ${describeError(error).message.slice(0, 200)}]`;
    }
  }

  /** A value that JSON has no true form for: refused, or replaced when cleaning. */
  #odd(problem: string, replacement: string): void {
    if (this.mode !== 'clean') throw new JsonFault(this.#here(), problem);
    this.#emit(replacement);
  }

  #emit(text: string): void {
    this.#out += text;
    if (this.#out.length > this.maxBytes) throw new JsonTooLarge();
  }

  #here(length = this.#path.length): string {
    return pathText(this.root, this.#path.slice(0, length));
  }
}

/** `payload.lines[2]["odd key"]`, cut when it is very long. */
export function pathText(root: string, path: readonly PropertyKey[]): string {
  let text = root;
  for (const part of path) {
    if (text.length > 300) return `${text}…`;
    if (typeof part === 'number') text += `[${part}]`;
    else if (typeof part === 'symbol') text += `[${String(part)}]`;
    else
      text += /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(part)
        ? `.${part}`
        : `[${JSON.stringify(part.slice(0, 100))}]`;
  }
  return text;
}

const NO_JSON_FORM = new Set([
  'Map',
  'Set',
  'WeakMap',
  'WeakSet',
  'RegExp',
  'Promise',
  'ArrayBuffer',
  'DataView',
  'Error',
  'Arguments',
]);

const MENDS: Readonly<Record<string, string>> = {
  Date: 'pass date.toISOString(), or use a schema that takes the text (z.coerce.date())',
  Buffer: "pass buffer.toString('base64'), or store the bytes elsewhere and pass their key",
  Map: 'pass Object.fromEntries(map), or an array',
  Set: 'pass an array',
  Arguments: 'pass [...arguments]',
};

function kindOf(value: object): string {
  if (types.isNativeError(value)) return 'Error';
  if (types.isDate(value)) return 'Date';
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  if (NO_JSON_FORM.has(tag)) return tag;
  const { constructor } = value;
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'a class';
}

/** A symbol that is not enumerable is a mark that somebody hid on purpose, no data. */
function leftOut(value: object, keys: readonly string[]): PropertyKey | undefined {
  // Two calls: Reflect.ownKeys is several times slower, and this is asked of every object.
  const names = Object.getOwnPropertyNames(value);
  if (names.length > keys.length) return names.find((key) => !isEnumerable(value, key));
  return Object.getOwnPropertySymbols(value).find((key) => isEnumerable(value, key));
}

function isEnumerable(value: object, key: PropertyKey): boolean {
  return Object.prototype.propertyIsEnumerable.call(value, key);
}
