import { Injectable } from '@nestjs/common';

/** Prints lines, and below them one line that changes in place. Where that is impossible (a pipe, a log), it becomes plain lines too. */
@Injectable()
export class Terminal {
  #status = '';

  line(text = ''): void {
    this.#erase();
    process.stdout.write(`${text}\n`);
    if (process.stdout.isTTY) process.stdout.write(this.#status);
  }

  /** Replaces the changing line; an empty text takes it away. */
  status(text: string): void {
    if (text === this.#status) return;
    this.#erase();
    this.#status = text;
    if (text !== '') process.stdout.write(process.stdout.isTTY ? text : `${text}\n`);
  }

  #erase(): void {
    if (process.stdout.isTTY && this.#status !== '') process.stdout.write('\r\u001b[2K');
  }
}
