import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { BuildInvoice, type BuiltInvoice } from '../invoices/invoice.jobs.js';
import { ENGINE_SCHEMA } from '../schemas.js';

/** An invoice job, wherever it is: waiting, running, done, in the dead letter. */
export interface InvoiceJob {
  readonly id: string;
  readonly orderNumber: string;
  readonly status: 'pending' | 'running' | 'paused' | 'succeeded' | 'failed' | 'canceled';
  readonly failures: number;
  readonly error: string | null;
  readonly result: BuiltInvoice | null;
}

/** Reads Ratchet's views: plain SQL, in the database that the app uses anyway. */
@Injectable()
export class InvoiceJobReader {
  constructor(private readonly dataSource: DataSource) {}

  async jobs(): Promise<InvoiceJob[]> {
    return this.dataSource.query<InvoiceJob[]>(
      `select id, payload->>'orderNumber' as "orderNumber", status, failures, error, result
         from ${ENGINE_SCHEMA}.jobs where name = $1 order by id`,
      [BuildInvoice.name],
    );
  }

  /** How many executions ended in which way: succeeded, retried, failed, crashed, released. */
  async executions(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.dataSource.query<{ outcome: string; count: number }[]>(
      `select e.outcome, count(*)::int as count
         from ${ENGINE_SCHEMA}.executions e join ${ENGINE_SCHEMA}.jobs j on j.id = e.job_id
        where j.name = $1 group by e.outcome`,
      [BuildInvoice.name],
    );
    return new Map(rows.map((row) => [row.outcome, row.count]));
  }
}
