/** Those who hear one kind of message. One that throws stops neither the others nor the one who tells. */
export class Listeners<Message> {
  readonly #listeners = new Set<{ readonly hear: (message: Message) => void }>();

  /** Returns the function that unregisters. A function that is added twice is called twice. */
  add(hear: (message: Message) => void): () => void {
    const listener = { hear };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  tell(message: Message): void {
    for (const { hear } of [...this.#listeners]) {
      try {
        hear(message);
      } catch {
        // Somebody's committed enqueue, or a socket's data event, is below us on the stack.
      }
    }
  }
}
