import { type ClientConfig } from 'pg';
import { type Row, type Statement } from '../../sql-client.js';
import { EngineConnection } from './engine-connection.js';

/**
 * The connections of a worker node: some for exchanges (all buckets take turns on them), one for everything that may
 * wait (probe, reconcile, rescue, maintenance), so that nothing of the second kind can delay the first.
 */
export class EngineConnections {
  readonly service: EngineConnection;
  /** Opened only where heartbeats are not sent by a worker thread. */
  readonly heartbeat: EngineConnection;
  readonly applicationName: string;
  readonly #exchange: readonly EngineConnection[];

  constructor(config: () => Promise<ClientConfig>, exchangeConnections: number, nodeLabel: string) {
    this.applicationName = `ratchet/${nodeLabel}`;
    const open = (): EngineConnection =>
      new EngineConnection({ config, applicationName: this.applicationName });
    this.service = open();
    this.heartbeat = open();
    this.#exchange = Array.from({ length: Math.max(1, exchangeConnections) }, open);
  }

  /** Sends an exchange on the least busy of its connections. */
  exchange(statement: Statement, parameters: readonly unknown[]): Promise<Row[]> {
    const [idlest] = [...this.#exchange].sort((a, b) => a.load - b.load);
    return (idlest as EngineConnection).query(statement, parameters);
  }

  async close(): Promise<void> {
    await Promise.all(
      [this.service, this.heartbeat, ...this.#exchange].map((connection) => connection.close()),
    );
  }
}
