/**
 * Health checks for `@nestjs/terminus`, an optional peer: 11 or 12.
 *
 * @packageDocumentation
 */
export { RatchetHealthIndicator } from './ratchet-health.indicator.js';
export { RatchetHealthModule } from './ratchet-health.module.js';
export { type HealthDetails, type HealthResult } from './health-result.js';
