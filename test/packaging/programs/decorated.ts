/** Compiled by swc to ES modules, with decorator metadata: names in decorated signatures must exist at run time. */
import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { defineJob, Job, JobContext, JobScheduler, type PayloadOf } from 'nestjs-ratchet';

const SendInvoice = defineJob<{ orderId: string }, string>('invoice.send');

@Injectable()
export class InvoiceJobs {
  constructor(readonly scheduler: JobScheduler) {}

  @Job(SendInvoice)
  async send({ orderId }: PayloadOf<typeof SendInvoice>, context: JobContext): Promise<string> {
    await this.scheduler.enqueueNamed('next', { orderId });
    return `${orderId} ${context.execution}`;
  }
}

const types = Reflect.getMetadata('design:paramtypes', InvoiceJobs.prototype, 'send') as (() => unknown)[];
console.log(types.map(({ name }) => name).join(' '));
