type AnyFunction = (...parameters: never) => unknown;

/**
 * The JSON shape of a class: its properties without its methods, and so for what they hold. A `Date` may be given as one, or
 * as its text.
 */
export type PlainOf<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends bigint
      ? string | number
      : T extends Date
        ? Date | string
        : T extends AnyFunction
          ? never
          : T extends readonly unknown[]
            ? { [Index in keyof T]: PlainOf<T[Index]> }
            : {
                [Key in keyof T as Exclude<T[Key], undefined> extends AnyFunction ? never : Key]: PlainOf<
                  T[Key]
                >;
              };
