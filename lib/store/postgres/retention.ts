import { Logger } from '@nestjs/common';
import { type RetentionReport, type RetentionRequest } from '../job-store.js';
import { faultKindOf, type StoreError } from '../store-fault.js';
import { PatientClient } from './connections/patient-client.js';
import { type MakeStatement, type PostgresSession } from './postgres-session.js';
import { selectPartitions } from './statements/partitions.js';
import {
  deleteDeadLetters,
  deleteExpiredKeys,
  deleteOldNotices,
  deletePayloadPage,
  RETENTION_CHUNK,
  selectOldestDay,
} from './statements/retention.js';

interface Partition {
  readonly name: string;
  readonly parent: string;
  readonly attached: boolean;
  readonly pending: boolean;
  readonly ours: boolean;
}

/** A node reads its notices every few seconds for as long as anything runs on it. */
const NOTICE_AGE_MS = 86_400_000;

const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/**
 * Forgets what is past its time: whole day partitions by detaching them without a lock that an insert would wait for,
 * plain tables in short batches. Needs the owner's role for partitions; without it the SQL is reported.
 */
export class Retention {
  static readonly #logger = new Logger('RatchetStore');
  readonly #patient: PatientClient;

  constructor(private readonly session: PostgresSession) {
    this.#patient = new PatientClient(session.engineConfig);
  }

  /** Cuts off a retirement that waits. */
  stop(): void {
    this.#patient.abandon();
  }

  /** An abort of `signal` ends it between two statements, with its reason. */
  async retain(request: RetentionRequest, signal?: AbortSignal): Promise<RetentionReport> {
    const idempotencyKeysDeleted = await this.#inBatches(deleteExpiredKeys, [this.session.offsetMs], signal);
    await this.session.service(deleteOldNotices, [this.session.offsetMs, NOTICE_AGE_MS]);
    const deadLetters = await this.#deadLetters(request.deadLetterMs, signal);
    const partitions = (await this.session.service(selectPartitions, [
      this.session.schemaName,
    ])) as unknown as Partition[];
    const history = await this.#expired(partitions, 'job_history', request.historyMs);
    const execution = await this.#expired(partitions, 'execution', request.executionMs);
    const expired = [...history, ...execution];
    const ours = expired.filter((partition) => partition.ours);
    let payloadsDeleted = deadLetters.payloads;
    for (const partition of ours) {
      if (partition.parent === 'job_history') payloadsDeleted += await this.#payloadsOf(partition, signal);
    }
    const partitionsDropped = await this.#retire(ours, signal);
    return {
      partitionsDropped,
      deadLettersDeleted: deadLetters.deleted,
      payloadsDeleted,
      idempotencyKeysDeleted,
      refused: expired
        .filter((partition) => !partition.ours)
        .map((partition) => this.#steps(partition).join(' ')),
    };
  }

  async #expired(partitions: readonly Partition[], parent: string, ageMs: number): Promise<Partition[]> {
    const [row] = await this.session.service(selectOldestDay, [this.session.offsetMs, ageMs]);
    const oldest = row?.['day'] as string;
    return partitions.filter(
      (partition) => partition.parent === parent && partition.name.slice(-oldest.length) < oldest,
    );
  }

  /** One partition that cannot be retired now must not keep the others. */
  async #retire(partitions: readonly Partition[], signal?: AbortSignal): Promise<string[]> {
    if (partitions.length === 0) return [];
    const dropped: string[] = [];
    await this.#patient.use(async (send) => {
      for (const partition of partitions) {
        signal?.throwIfAborted();
        try {
          for (const step of this.#steps(partition)) await send(step);
          dropped.push(partition.name);
        } catch (error) {
          Retention.#logger.warn(
            `Partition ${partition.name} stays until the next round: ${(error as StoreError).message}`,
          );
          // The connection is gone; what is half retired is finished by the next round.
          if (faultKindOf(error) === 'unknown') break;
        }
      }
    });
    return dropped;
  }

  #steps({ name, parent, attached, pending }: Partition): string[] {
    const { schema } = this.session;
    const detach = `alter table ${schema}.${parent} detach partition ${schema}.${name}`;
    return [
      ...(pending ? [`${detach} finalize;`] : attached ? [`${detach} concurrently;`] : []),
      `drop table ${schema}.${name};`,
    ];
  }

  async #payloadsOf(partition: Partition, signal?: AbortSignal): Promise<number> {
    const statement = deletePayloadPage(this.session.schema, `${this.session.schema}.${partition.name}`);
    let deleted = 0;
    let after = FIRST_ID;
    for (;;) {
      signal?.throwIfAborted();
      const [page] = await this.session.engine.service.query(statement, [after]);
      deleted += page?.['deleted'] as number;
      if ((page?.['read'] as number) < RETENTION_CHUNK) return deleted;
      after = page?.['last'] as string;
    }
  }

  async #deadLetters(ageMs: number, signal?: AbortSignal): Promise<{ deleted: number; payloads: number }> {
    let payloads = 0;
    const deleted = await this.#inBatches(
      deleteDeadLetters,
      [this.session.offsetMs, ageMs],
      signal,
      (row) => {
        payloads += row['payloads'] as number;
      },
    );
    return { deleted, payloads };
  }

  async #inBatches(
    statement: MakeStatement,
    parameters: readonly unknown[],
    signal?: AbortSignal,
    each: (row: Record<string, unknown>) => void = () => undefined,
  ): Promise<number> {
    let deleted = 0;
    for (;;) {
      signal?.throwIfAborted();
      const [row] = await this.session.service(statement, parameters);
      if (row) each(row);
      const batch = (row?.['deleted'] as number | undefined) ?? 0;
      deleted += batch;
      if (batch < RETENTION_CHUNK) return deleted;
    }
  }
}
