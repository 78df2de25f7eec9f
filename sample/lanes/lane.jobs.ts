import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { defineJob, Job, JobContext, type PayloadOf } from 'nestjs-ratchet';

/** Mail: many short jobs, some of them urgent. */
export const SendMail = defineJob<{ n: number }>('lanes.mail', { lane: 'mail' });
/** Reports: fewer, longer. */
export const BuildReport = defineJob<{ n: number }>('lanes.report', { lane: 'reports' });

const MAIL_MS = 60;
const REPORT_MS = 120;

/** Stands for work that waits for something else, as most work does; it ends at once when its signal says so. */
@Injectable()
export class LaneJobs {
  @Job(SendMail)
  async send(_payload: PayloadOf<typeof SendMail>, { signal }: JobContext): Promise<void> {
    await sleep(MAIL_MS, undefined, { signal });
  }

  @Job(BuildReport)
  async build(_payload: PayloadOf<typeof BuildReport>, { signal }: JobContext): Promise<void> {
    await sleep(REPORT_MS, undefined, { signal });
  }
}
