import { Injectable } from '@nestjs/common';
import { BroadcastCoordinator } from 'nestjs-ratchet';

/** Carries texts between the coordinators of one process that share it. */
export class MemoryHub {
  readonly receivers = new Set<(text: string) => void>();
}

/** The least that a coordinator of one's own takes. */
@Injectable()
export class MemoryCoordinator extends BroadcastCoordinator {
  closed = 0;
  #receiver: ((text: string) => void) | undefined;

  constructor(private readonly hub: MemoryHub) {
    super();
  }

  protected override connect(): void {
    this.#receiver = (text) => this.receive(text);
    this.hub.receivers.add(this.#receiver);
    this.caughtUp();
  }

  protected override broadcast(texts: readonly string[]): Promise<void> {
    for (const text of texts) for (const receive of this.hub.receivers) receive(text);
    return Promise.resolve();
  }

  protected override disconnect(): Promise<void> {
    this.closed += 1;
    if (this.#receiver) this.hub.receivers.delete(this.#receiver);
    return Promise.resolve();
  }
}
