import { Injectable } from '@nestjs/common';
import { Recurring, RecurringContext } from 'nestjs-ratchet';

/** Of the schedule that all processes of the sample have. */
export const TICK = 'tick';

/** What a process tells the one that started it. */
export interface Ticked {
  readonly scheduledFor: string;
}

/** The schedule: an occurrence each second. Every process has it, and one of them runs each occurrence. */
@Injectable()
export class TickJobs {
  // One that was killed may live on as running for a moment, and must not stop the others; and none is dropped for being late.
  @Recurring('* * * * * *', { id: TICK, overlap: 'allow', misfire: { catchUp: 100 } })
  tick(ctx: RecurringContext): void {
    process.send?.({ scheduledFor: ctx.scheduledFor.toISOString() } satisfies Ticked);
  }
}
