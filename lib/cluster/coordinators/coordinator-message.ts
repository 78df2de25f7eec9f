import { JOB_LIMITS } from '../../jobs/limits.js';
import { type PriorityRank } from '../../jobs/priority.js';
import { type ClusterSignal, type JobSignal, type Wakeup } from '../cluster-coordinator.js';

/** What one process tells the others. */
export type CoordinatorMessage = ({ readonly kind: 'wakeup' } & Wakeup) | ClusterSignal;

/** A text as it travels: who sent it, and what it says. */
export interface Envelope {
  /** A random word for each process: node ids may repeat for a while, and change. */
  readonly from: string;
  readonly messages: readonly CoordinatorMessage[];
}

const VERSION = 1;
/** Node ids have 64 characters, and a suffix when two processes have the same one. */
const SOURCE_LENGTH = 200;
const ID_LENGTH = 64;

/**
 * As few texts as they fit in, none longer than `maxBytes`. A message that does not fit alone is left out: it is a hint.
 */
export function encode({ from, messages }: Envelope, maxBytes: number): string[] {
  const head = `{"v":${String(VERSION)},"from":${JSON.stringify(from)},"messages":[`;
  const tail = ']}';
  const room = maxBytes - Buffer.byteLength(head) - tail.length;
  const texts: string[] = [];
  let parts: string[] = [];
  let bytes = 0;
  const close = (): void => {
    if (parts.length > 0) texts.push(head + parts.join(',') + tail);
    parts = [];
    bytes = 0;
  };
  for (const message of messages) {
    const part = JSON.stringify(message);
    const length = Buffer.byteLength(part) + 1;
    if (length > room) continue;
    if (bytes + length > room) close();
    parts.push(part);
    bytes += length;
  }
  close();
  return texts;
}

/**
 * Undefined for what is none of ours: anybody may write to a channel. A message of a kind that this version does not know is
 * left out.
 */
export function decode(text: string): Envelope | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { v, from, messages } = fieldsOf(value);
  if (v !== VERSION || !isText(from, ID_LENGTH) || !Array.isArray(messages)) return undefined;
  return { from, messages: messages.map(readMessage).filter((message) => message !== undefined) };
}

/** A message by its known fields; undefined when one of them is not what it should be. */
export function readMessage(value: unknown): CoordinatorMessage | undefined {
  const { kind, lane, priority, source, dueInMs, behind, jobId, claimSeq } = fieldsOf(value);
  if (!isText(source, SOURCE_LENGTH)) return undefined;
  if (kind === 'wakeup') {
    if (!isText(lane, JOB_LIMITS.laneLength) || !isRank(priority)) return undefined;
    return {
      kind,
      lane,
      priority,
      source,
      ...(typeof dueInMs === 'number' && dueInMs > 0 ? { dueInMs } : {}),
      ...(behind === true ? { behind } : {}),
    };
  }
  if (kind === 'hungry') return isText(lane, JOB_LIMITS.laneLength) ? { kind, source, lane } : undefined;
  if (!isSignalKind(kind) || !isText(jobId, ID_LENGTH)) return undefined;
  return { kind, source, jobId, ...(isText(claimSeq, ID_LENGTH) ? { claimSeq } : {}) };
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function isSignalKind(kind: unknown): kind is JobSignal['kind'] {
  return kind === 'cancel' || kind === 'awaited' || kind === 'ended';
}

function isText(value: unknown, maxLength: number): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= maxLength;
}

function isRank(value: unknown): value is PriorityRank {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 4;
}
