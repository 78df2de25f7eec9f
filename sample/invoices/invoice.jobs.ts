import { defineJob } from 'nestjs-ratchet';

export interface BuiltInvoice {
  /** Inside the output folder. */
  file: string;
  totalCents: number;
}

/** What the job is: imported by whoever enqueues it and by whoever handles it. */
export const BuildInvoice = defineJob<{ orderNumber: string }, BuiltInvoice>('invoice.build', {
  // The tax service is down now and then, never for long.
  maxRetries: 8,
  backoff: { type: 'exponential', delay: '400ms', maxDelay: '3s' },
  timeout: '30s',
});
