import { randomBytes } from 'node:crypto';
import { type TestDatabase } from '../support/database.js';

/** A role with all rights of the tests' own, whose number of connections can be limited: a superuser's cannot. */
export class LimitedRole {
  /** The database, under this role. */
  readonly url: string;
  readonly #database: TestDatabase;
  readonly #name: string;

  private constructor(database: TestDatabase, name: string, url: string) {
    this.#database = database;
    this.#name = name;
    this.url = url;
  }

  static async on(database: TestDatabase): Promise<LimitedRole> {
    const name = `chaos_${randomBytes(4).toString('hex')}`;
    const url = new URL(database.url);
    await database.query(`create role ${name} login password 'chaos'; grant ${url.username} to ${name}`);
    url.username = name;
    url.password = 'chaos';
    return new LimitedRole(database, name, url.href);
  }

  /** Nobody of this role gets one connection more, and those that there are end: all but as many as that can come back. */
  async exhaust(left = 0): Promise<void> {
    await this.#limit(left);
    await this.#database.terminateBackends();
  }

  async relieve(): Promise<void> {
    await this.#limit(-1);
  }

  /** When its processes have ended. */
  async drop(): Promise<void> {
    await this.#database.query(`drop role ${this.#name}`);
  }

  async #limit(connections: number): Promise<void> {
    await this.#database.query(`alter role ${this.#name} connection limit ${String(connections)}`);
  }
}
