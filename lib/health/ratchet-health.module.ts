import { Module } from '@nestjs/common';
import { RatchetMonitor } from '../index.js';
import { RatchetHealthIndicator } from './ratchet-health.indicator.js';
import { loadTerminus } from './terminus.js';

/**
 * Provides {@link RatchetHealthIndicator}. Import it, and terminus's own `TerminusModule`, where the health controller is. Needs
 * the optional peer `@nestjs/terminus`, 11 or 12; without it the boot fails with `HEALTH_PACKAGE_MISSING`.
 */
@Module({
  providers: [
    {
      provide: RatchetHealthIndicator,
      inject: [RatchetMonitor],
      useFactory: async (monitor: RatchetMonitor) =>
        new RatchetHealthIndicator(monitor, await loadTerminus()),
    },
  ],
  exports: [RatchetHealthIndicator],
})
export class RatchetHealthModule {}
