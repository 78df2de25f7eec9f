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
  deleteOrphanedPayloads,
  deletePayloadPage,
  RETENTION_CHUNK,
  selectDays,
} from './statements/retention.js';

interface Partition {
  readonly name: string;
  readonly parent: string;
  readonly attached: boolean;
  readonly pending: boolean;
  readonly ours: boolean;
  /** YYYYMMDD, as all days here: their order is that of the texts. */
  readonly day: string;
  readonly bytes: number;
  readonly empty: boolean;
}

interface Days {
  readonly today: string;
  readonly yesterday: string;
  /** The oldest that are kept. */
  readonly history: string;
  readonly execution: string;
}

/** A node reads its notices every few seconds for as long as anything runs on it. */
const NOTICE_AGE_MS = 86_400_000;

const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/** Pages of payloads that one round looks through for those without a job. */
const ORPHAN_PAGES = 5;

/**
 * Forgets what is past its time: whole day partitions by detaching them without a lock that an insert would wait for,
 * plain tables in short batches. Needs the owner's role for partitions; without it the SQL is reported.
 *
 * Payloads that rest in their own table go before their day does: afterwards nothing would say whose they were. That holds for
 * days that only the owner can drop, too. What was left behind all the same (a day that somebody dropped by hand) is found by a slow sweep.
 */
export class Retention {
  static readonly #logger = new Logger('RatchetStore');
  readonly #patient: PatientClient;
  /** Days that could not be dropped yet, and have no payloads left: not to be read through every hour. */
  #emptied: ReadonlySet<string> = new Set();
  /** How far the sweep has come. */
  #sweptTo = FIRST_ID;

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
    const [row] = await this.session.service(selectDays, [
      this.session.offsetMs,
      request.historyMs,
      request.executionMs,
    ]);
    const days = row as unknown as Days;
    const history = partitions.filter(({ parent }) => parent === 'job_history');
    const execution = partitions.filter(({ parent }) => parent === 'execution');
    const forSize = tooMuch(
      history.filter((partition) => partition.day >= days.history),
      request.historyBytes,
      days,
    );
    const expired = [
      ...past(history, days.history, days),
      ...forSize,
      ...past(execution, days.execution, days),
    ];
    let payloadsDeleted = deadLetters.payloads + (await this.#payloadsOfDays(expired, signal));
    const ours = expired.filter((partition) => partition.ours);
    const partitionsDropped = await this.#retire(ours, signal);
    // One that is dropped may come back under its name.
    this.#emptied = new Set([...this.#emptied].filter((name) => !partitionsDropped.includes(name)));
    payloadsDeleted += await this.#orphanedPayloads(request.historyMs, signal);
    return {
      partitionsDropped,
      droppedForSize: forSize.map(({ name }) => name).filter((name) => partitionsDropped.includes(name)),
      deadLettersDeleted: deadLetters.deleted,
      payloadsDeleted,
      idempotencyKeysDeleted,
      refused: expired
        .filter((partition) => !partition.ours)
        .map((partition) => this.#steps(partition).join(' ')),
    };
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

  async #payloadsOfDays(expired: readonly Partition[], signal?: AbortSignal): Promise<number> {
    const days = expired.filter(({ parent }) => parent === 'job_history');
    const emptied = new Set(days.map(({ name }) => name).filter((name) => this.#emptied.has(name)));
    this.#emptied = emptied;
    let deleted = 0;
    for (const day of days) {
      if (emptied.has(day.name)) continue;
      deleted += await this.#payloadsOf(day, signal);
      emptied.add(day.name);
    }
    return deleted;
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

  /** From the oldest on, a few pages a round. Those that are younger than history is kept are left for a later time. */
  async #orphanedPayloads(historyMs: number, signal?: AbortSignal): Promise<number> {
    let deleted = 0;
    for (let pages = 0; pages < ORPHAN_PAGES; pages += 1) {
      signal?.throwIfAborted();
      const [page] = await this.session.service(deleteOrphanedPayloads, [
        this.#sweptTo,
        this.session.offsetMs,
        historyMs,
      ]);
      deleted += page?.['deleted'] as number;
      const isLast = (page?.['read'] as number) < RETENTION_CHUNK;
      this.#sweptTo = isLast ? FIRST_ID : (page?.['last'] as string);
      if (isLast) break;
    }
    return deleted;
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

/** Those before the oldest day that is kept. */
function past(partitions: readonly Partition[], oldest: string, days: Days): Partition[] {
  return partitions.filter((partition) => partition.day < oldest && isWorthIt(partition, days));
}

/** The oldest, until the others are within the bound. Today's is written to and stays, however large it is. */
function tooMuch(partitions: readonly Partition[], bound = Infinity, days: Days): Partition[] {
  const written = partitions
    .filter(({ day }) => day <= days.today)
    .sort((one, other) => (one.day < other.day ? -1 : 1));
  let bytes = written.reduce((sum, partition) => sum + partition.bytes, 0);
  const chosen: Partition[] = [];
  for (const partition of written) {
    if (bytes <= bound || partition.day === days.today) break;
    if (!isWorthIt(partition, days)) continue;
    chosen.push(partition);
    bytes -= partition.bytes;
  }
  return chosen;
}

/** An empty one of yesterday would be made again within the hour, and dropped again. */
function isWorthIt({ empty, day }: Partition, { yesterday }: Days): boolean {
  return !empty || day < yesterday;
}
