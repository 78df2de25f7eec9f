import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { SampleOptions } from '../sample-options.js';

const PERCENT: Record<string, number> = {
  AT: 20,
  BE: 21,
  DE: 19,
  ES: 21,
  FR: 20,
  IE: 23,
  IT: 22,
  NL: 21,
  PT: 23,
};

/** Stands for somebody else's service: slow, and every fifth request fails. */
@Injectable()
export class TaxService {
  #requests = 0;

  constructor(private readonly options: SampleOptions) {}

  /** Percent. Rejects when the service is down, and when `signal` is aborted (timeout, cancel, shutdown). */
  async rateOf(country: string, signal: AbortSignal): Promise<number> {
    this.#requests += 1;
    const down = this.#requests % 5 === 0;
    await sleep(this.options.taxLatencyMs, undefined, { signal });
    if (down) throw new Error('tax service: 503 Service Unavailable');
    const percent = PERCENT[country];
    if (percent === undefined) throw new Error(`tax service: 404, no country "${country}"`);
    return percent;
  }
}
