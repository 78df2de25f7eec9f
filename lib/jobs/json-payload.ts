import { type JsonPrimitive } from './json.js';

/**
 * Types that find, at compile time, what JSON would change in a payload. The run-time codec is the judge; these only bring
 * its verdict to the editor. Two steps, because one would be slow or unreadable: {@link JsonForm} says yes or no and is
 * cheap on recursive types, {@link PayloadFault} words the fault and is only computed when there is one.
 */

type AnyFunction = (...parameters: never) => unknown;
type AnyConstructor = abstract new (...parameters: never) => unknown;

/** `Error` itself, not what merely has a name and a message (a contact form does). */
type IsError<T> = (<G>() => G extends T ? 1 : 2) extends <G>() => G extends Error ? 1 : 2 ? true : false;

type MapLike = { readonly [Symbol.toStringTag]: string; get: AnyFunction; forEach: AnyFunction };
type SetLike = { readonly [Symbol.toStringTag]: string; has: AnyFunction; forEach: AnyFunction };

type Changed =
  | bigint
  | symbol
  | AnyFunction
  | AnyConstructor
  | Date
  | RegExp
  | MapLike
  | SetLike
  | WeakMap<never, unknown>
  | PromiseLike<unknown>
  | ArrayBuffer
  | ArrayBufferView;

/** `T` with everything that JSON would change replaced by `never`: a payload is fit when it equals its form. */
export type JsonForm<T> = unknown extends T
  ? T
  : T extends JsonPrimitive
    ? T
    : T extends Changed
      ? never
      : IsError<T> extends true
        ? never
        : T extends readonly unknown[]
          ? // Not a mapped array: its element would be resolved at once, and recursive unions would never end.
            { readonly [index: number]: JsonForm<T[number]> }
          : T extends object
            ? {
                [K in keyof T]: K extends symbol
                  ? never
                  : JsonForm<Exclude<T[K], undefined>> | Extract<T[K], undefined>;
              }
            : never;

type KindOf<T> = T extends bigint
  ? 'a bigint'
  : T extends symbol
    ? 'a symbol'
    : T extends AnyFunction | AnyConstructor
      ? 'a function'
      : T extends Date
        ? 'a Date'
        : T extends MapLike
          ? 'a Map'
          : T extends SetLike
            ? 'a Set'
            : T extends undefined
              ? 'undefined'
              : T extends Changed
                ? 'an instance of a class'
                : IsError<T> extends true
                  ? 'an Error'
                  : never;

type KeyText<K> = K extends string | number ? `${K}` : 'symbol';

/** Where and what, as a literal type that the compiler prints: `"payload.dueAt is a Date: JSON would change it"`. */
export type PayloadFault<T, Path extends string = 'payload', Depth extends 1[] = []> = unknown extends T
  ? never
  : Depth['length'] extends 5
    ? `${Path} holds something that JSON would change`
    : T extends JsonPrimitive
      ? never
      : [KindOf<T>] extends [never]
        ? T extends readonly unknown[]
          ? PayloadFault<T[number], `${Path}[]`, [...Depth, 1]>
          : T extends object
            ? {
                [K in keyof T]-?: [Exclude<T[K], undefined>] extends [JsonForm<Exclude<T[K], undefined>>]
                  ? never
                  : PayloadFault<Exclude<T[K], undefined>, `${Path}.${KeyText<K>}`, [...Depth, 1]>;
              }[keyof T]
            : never
        : `${Path} is ${KindOf<T>}: JSON would change it`;

type Fits<P, Bound> = [P] extends [Bound] ? true : false;

/** `Then` when the payload type is fit for JSON, else a literal that says what is not. No payload at all is fit. */
export type IfJson<P, Then> =
  Fits<P, void> extends true ? Then : [P] extends [JsonForm<P>] ? Then : PayloadFault<P>;
