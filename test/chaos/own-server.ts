import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { type EmbeddedPostgres, startEmbeddedPostgres } from 'nestjs-ratchet/embedded';

/** A server of the test's own, that it may stop and start; it keeps its port. While it is open, test databases are made there. */
export class OwnServer {
  #folder = '';
  #server: EmbeddedPostgres | undefined;
  #before: string | undefined;

  async open(): Promise<void> {
    Logger.overrideLogger(false);
    this.#folder = await mkdtemp(join(tmpdir(), 'ratchet-chaos-'));
    await chmod(this.#folder, 0o755);
    this.#server = await startEmbeddedPostgres({ dataDir: this.#dataDir });
    this.#before = process.env['RATCHET_TEST_DATABASE_URL'];
    process.env['RATCHET_TEST_DATABASE_URL'] = this.#server.url;
  }

  get port(): number {
    return this.#running.port;
  }

  /** `immediate` is a crash: sessions are not told, and the server recovers from its log. */
  async stop(how: 'fast' | 'immediate'): Promise<void> {
    if (how === 'immediate') {
      const pid = Number((await readFile(join(this.#dataDir, 'postmaster.pid'), 'utf8')).split('\n')[0]);
      process.kill(pid, 'SIGQUIT');
      await gone(pid);
    }
    await this.#running.stop();
  }

  async start(): Promise<void> {
    this.#server = await startEmbeddedPostgres({ dataDir: this.#dataDir, port: this.port });
  }

  async close(): Promise<void> {
    await this.#server?.stop();
    await rm(this.#folder, { recursive: true, force: true });
    if (this.#before === undefined) delete process.env['RATCHET_TEST_DATABASE_URL'];
    else process.env['RATCHET_TEST_DATABASE_URL'] = this.#before;
  }

  get #dataDir(): string {
    return join(this.#folder, 'data');
  }

  get #running(): EmbeddedPostgres {
    if (!this.#server) throw new Error('the server was not opened');
    return this.#server;
  }
}

async function gone(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
