/** A text with `$n` for each name that it had, and the names in that order. */
export interface PositionalText {
  readonly text: string;
  readonly names: readonly string[];
}

/** Numbers the parameters of a text that calls them `@name`, in the order of their first appearance. */
export function numbered(text: string): PositionalText {
  const names: string[] = [];
  const positional = text.replaceAll(/@([a-zA-Z]+)/g, (_, name: string) => {
    const place = names.indexOf(name);
    return `$${String(place < 0 ? names.push(name) : place + 1)}`;
  });
  return { text: positional, names };
}
