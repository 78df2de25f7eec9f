import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { type EngineEvents } from '../observability/engine-events.js';
import { type JobStore, type NodeRef, type NodeRegistration as NodeRow } from '../store/job-store.js';
import { type LineLogger } from './line-logger.js';
import { type Patience } from './patience.js';

/** Longest id that the node table takes. */
const MOST_ID_LENGTH = 64;

/** The other process, where the database knows it. */
export type Deposition = { readonly host: string; readonly pid: number } | undefined;

export interface NodeRegistrationParts {
  readonly id: string;
  readonly row: Pick<NodeRow, 'version' | 'lanes' | 'handlers'>;
  readonly store: JobStore;
  readonly patience: Patience;
  readonly events: EngineEvents;
  readonly logger: LineLogger;
  /** The node has another id from now on. */
  readonly onRenamed: (node: NodeRef) => void;
}

/**
 * Who this process is in the database. It registers under its id once, and never takes the id back from a process that
 * registered after it, because two live ones that both insisted would depose each other for ever: it goes on under an id of
 * its own. That an id is gone says nothing about the buckets that were opened under it: each is lost when the database says so.
 */
export class NodeRegistration {
  readonly #parts: NodeRegistrationParts;
  readonly #past: NodeRef[] = [];
  #node: NodeRef | undefined;
  #renaming: Promise<NodeRef> | undefined;

  constructor(parts: NodeRegistrationParts) {
    this.#parts = parts;
  }

  /** Undefined until registered. */
  get node(): NodeRef | undefined {
    return this.#node;
  }

  /** All that this process has been. */
  get all(): readonly NodeRef[] {
    return this.#node ? [...this.#past, this.#node] : this.#past;
  }

  async first(): Promise<NodeRef> {
    this.#node = await this.#register(this.#parts.id);
    return this.#node;
  }

  /** What to be instead of `old`, which another process has taken: one new id, however many buckets notice, and however late. */
  instead(old: NodeRef, by: Deposition): Promise<NodeRef> {
    if (this.#node && old !== this.#node) return Promise.resolve(this.#node);
    this.#renaming ??= this.#rename(old, by).finally(() => (this.#renaming = undefined));
    return this.#renaming;
  }

  async #rename(old: NodeRef, by: Deposition): Promise<NodeRef> {
    const node = await this.#register(ownId(old.id));
    this.#past.push(old);
    this.#node = node;
    const why = by
      ? `another process registered as node ${old.id} (host ${by.host}, pid ${by.pid})`
      : `the row of node ${old.id} is gone: another process registered under it and has left, or somebody deleted it`;
    this.#parts.logger.error(`${why}; this one goes on as ${node.id}; give each process a nodeId of its own`);
    this.#parts.onRenamed(node);
    return node;
  }

  async #register(id: string): Promise<NodeRef> {
    const { store, patience, row, events } = this.#parts;
    const registration = { id, host: hostname(), pid: process.pid, ...row };
    const node = await patience.until('registration', () => store.registerNode(registration));
    events.emit('registered', { node: node.id, epoch: node.epoch });
    return node;
  }
}

function ownId(id: string): string {
  const tail = `~${randomBytes(4).toString('hex')}`;
  return id.replace(/~[0-9a-f]{8}$/, '').slice(0, MOST_ID_LENGTH - tail.length) + tail;
}
