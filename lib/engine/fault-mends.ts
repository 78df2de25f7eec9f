import { type StoreFaultKind } from '../store/store-fault.js';

const BY_KIND: Record<StoreFaultKind, string> = {
  rolled_back: 'it was rolled back and is sent again',
  unknown: 'the reply was lost; claims are compared with the database before going on',
  unavailable: 'the database is away; trying again',
  missing_partition: 'a day partition is missing; making it',
  bad_row: 'one row cannot be recorded; it is being singled out',
  fatal: 'trying again',
};

/** What the SQLSTATE knows better. What a person must mend is a part of the message already. */
const BY_STATE: readonly (readonly [RegExp, string])[] = [
  [/^55P03$/, 'somebody holds a lock that it needs (pg_locks says who); trying again'],
  [/^57014$/, 'it took longer than it may; trying again'],
  [/^25006$/, 'the database refuses writes; trying again'],
  [/^53/, 'the server is short of connections, memory or disk; trying again'],
];

/** What is done about a failed statement, and what a person can do. */
export function mendOf(kind: StoreFaultKind, sourceCode: unknown): string {
  const code = typeof sourceCode === 'string' ? sourceCode : '';
  return BY_STATE.find(([state]) => state.test(code))?.[1] ?? BY_KIND[kind];
}
