import { type RatchetSnapshot } from '../index.js';

/** What a check says beside `status`: plain values, without payloads and addresses. */
export interface HealthDetails extends Record<string, unknown> {
  readonly nodeId: string;
  readonly state: RatchetSnapshot['state'];
  readonly running: number;
  /** Why it is down. */
  readonly reason?: string;
  /** It works, and somebody should look: one sentence each. */
  readonly degraded?: readonly string[];
}

/** The result of a check under its key, as terminus takes it. */
export type HealthResult<K extends string> = Record<K, { readonly status: 'up' | 'down' } & HealthDetails>;
