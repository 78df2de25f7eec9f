import { inspect } from 'node:util';

/** How an error message shows a value that was given: short, on one line, and never throwing. */
export function showValue(value: unknown, maxLength = 80): string {
  let text: string;
  try {
    text =
      typeof value === 'string'
        ? JSON.stringify(value.slice(0, maxLength + 1))
        : inspect(value, {
            depth: 1,
            breakLength: Infinity,
            maxArrayLength: 5,
            maxStringLength: maxLength,
            getters: false,
          });
  } catch {
    text = `a ${typeof value}`;
  }
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
}
