import { type DynamicModule, Module } from '@nestjs/common';
import { RatchetModule } from 'nestjs-ratchet';
import { TickJobs } from './tick.jobs.js';

/** A schema of its own, dropped at each start. */
export const TICK_SCHEMA = 'sample_recurring';

@Module({})
export class TickModule {
  /** @param nodeId - undefined: this process runs nothing and only asks. */
  static for(databaseUrl: string, nodeId?: string): DynamicModule {
    return {
      module: TickModule,
      imports: [
        RatchetModule.forRoot({
          connection: databaseUrl,
          schema: TICK_SCHEMA,
          // Three seconds until the jobs of a killed process are taken back, so that nobody has to wait for it here.
          heartbeat: { interval: '1s', grace: '3s' },
          ...(nodeId === undefined ? { worker: false } : { nodeId }),
        }),
      ],
      providers: nodeId === undefined ? [] : [TickJobs],
    };
  }
}
