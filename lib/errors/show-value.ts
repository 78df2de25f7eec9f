import { inspect } from 'node:util';

/** For text that others wrote and that stands in a line of ours: what would break the line, or steer a terminal, is shown as its code. */
export function escapeControls(text: string): string {
  return text.replace(
    /[\p{Cc}\u2028\u2029]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** How an error message shows a value that was given: short, on one line, and never throwing. */
export function showValue(value: unknown, maxLength = 80): string {
  let text: string;
  try {
    text =
      typeof value === 'string'
        ? escapeControls(JSON.stringify(value.slice(0, maxLength + 1)))
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
