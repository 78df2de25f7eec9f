/**
 * Whether a statement met a day of history that was dropped between its planning and its execution: it saw nothing and did
 * nothing, and sent again it is planned without that day. Of servers that let this happen: newer ones look again themselves.
 */
export function isStalePlan(error: unknown): boolean {
  const { sourceCode, message } = error as { sourceCode?: unknown; message?: unknown };
  return (
    sourceCode === '42P01' || (sourceCode === 'XX000' && /could not open relation/.test(message as string))
  );
}
