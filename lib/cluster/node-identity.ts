import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

/** Says who this process is. Override it to keep one id over restarts (a pod name): its work then comes back at once. */
export abstract class NodeIdentityProvider {
  /** At most 64 characters, unique among the processes that run now. */
  abstract nodeId(): string;
}

/** `hostname-pid-8hex`, cut to 64 characters. */
export class DefaultNodeIdentity extends NodeIdentityProvider {
  readonly #id: string;

  constructor(fixed?: string) {
    super();
    const tail = `-${process.pid}-${randomBytes(4).toString('hex')}`;
    this.#id = fixed ?? hostname().slice(0, 64 - tail.length) + tail;
  }

  override nodeId(): string {
    return this.#id;
  }
}
