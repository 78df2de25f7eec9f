/** A number and what there are so many of, as people write it: `1 job`, `2 jobs`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
