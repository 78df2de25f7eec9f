import { randomBytes, randomUUID } from 'node:crypto';
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
  readonly row: Omit<NodeRow, 'id' | 'host' | 'pid' | 'process' | 'cordoned'>;
  /** Somebody has drained this process by hand: it stays so under another epoch. */
  readonly cordoned: () => boolean;
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
  readonly #process = randomUUID();
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
    const again = by ? undefined : await this.#return(old.id);
    const node = again ?? (await this.#register(ownId(old.id)));
    this.#past.push(old);
    this.#node = node;
    const { logger, onRenamed } = this.#parts;
    if (again)
      logger.warn(`the row of node ${old.id} was gone (declared dead, or deleted): it registered again`);
    else void this.#tellClash(old, node, by);
    onRenamed(node);
    return node;
  }

  /** Never rejects. Nobody waits for a line of the log. */
  async #tellClash(old: NodeRef, node: NodeRef, by: Deposition): Promise<void> {
    const other = by ?? (await this.#holderOf(old.id));
    const who = other ? ` (host ${other.host}, pid ${other.pid})` : '';
    this.#parts.logger.error(
      `another process registered as node ${old.id}${who}; this one goes on as ${node.id}; give each process a nodeId of its own`,
    );
  }

  async #register(id: string): Promise<NodeRef> {
    const { store, patience } = this.#parts;
    return this.#registered(await patience.until('registration', () => store.registerNode(this.#rowOf(id))));
  }

  /** For a line of the log, so that a failure costs no more than that. */
  async #holderOf(id: string): Promise<Deposition> {
    const nodes = await this.#parts.store.nodes().catch(() => []);
    return nodes.find((node) => node.id === id);
  }

  /** Under the same id, while no other process has it. */
  async #return(id: string): Promise<NodeRef | undefined> {
    const { store, patience } = this.#parts;
    const node = await patience.until('registration', () => store.returnNode(this.#rowOf(id)));
    return node && this.#registered(node);
  }

  #rowOf(id: string): NodeRow {
    const { row, cordoned } = this.#parts;
    return { id, host: hostname(), pid: process.pid, process: this.#process, ...row, cordoned: cordoned() };
  }

  #registered(node: NodeRef): NodeRef {
    this.#parts.events.emit('registered', { node: node.id, epoch: node.epoch });
    return node;
  }
}

function ownId(id: string): string {
  const tail = `~${randomBytes(4).toString('hex')}`;
  return id.replace(/~[0-9a-f]{8}$/, '').slice(0, MOST_ID_LENGTH - tail.length) + tail;
}
