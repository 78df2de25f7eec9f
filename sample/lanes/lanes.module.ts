import { type DynamicModule, Module } from '@nestjs/common';
import { RatchetModule } from 'nestjs-ratchet';
import { LaneJobs } from './lane.jobs.js';

/** A schema of its own, dropped at each start. */
export const LANES_SCHEMA = 'sample_lanes';

@Module({})
export class LanesModule {
  /** @param nodeId - undefined: this process runs nothing; it enqueues, looks and acts on the buckets. */
  static for(databaseUrl: string, nodeId?: string): DynamicModule {
    return {
      module: LanesModule,
      imports: [
        RatchetModule.forRoot({
          connection: databaseUrl,
          schema: LANES_SCHEMA,
          // All lanes of a node share these slots.
          concurrency: 8,
          lanes: {
            // Buckets of their own for each priority: a crowd of low ones cannot take the slots of the critical ones. Those that are not
            // named (high, low) have one each; lowest is switched off, and an enqueue of it is refused.
            mail: { buckets: { critical: 2, normal: 1, lowest: 0 } },
            // One bucket for all priorities. Two slots are its own whatever the mail does, it never has more than four, and its next jobs
            // are claimed already when a slot is free.
            reports: { concurrency: 4, reserved: 2, bufferSize: 8 },
          },
          // Three seconds until the jobs of a killed process are taken back, so that nobody has to wait for it here.
          heartbeat: { interval: '1s', grace: '3s' },
          ...(nodeId === undefined ? { worker: false } : { nodeId }),
        }),
      ],
      providers: nodeId === undefined ? [] : [LaneJobs],
    };
  }
}
