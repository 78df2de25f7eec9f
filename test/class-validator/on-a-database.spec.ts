import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { Transform, Type } from 'class-transformer';
import { IsDate, IsInt } from 'class-validator';
import { classSchema } from 'nestjs-ratchet/class-validator';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type JobDefinition } from '../../lib/jobs/job-definition.js';
import { encodePayload } from '../../lib/jobs/payload-codec.js';
import { engineFixture } from '../engine/engine-fixture.js';

class Price {
  @IsInt() @Transform(({ value }) => Number(value) * 100) cents!: number;
  @Type(() => Date) @IsDate() from!: Date;

  text(): string {
    return `${this.cents} from ${this.from.getUTCFullYear()}`;
  }
}

describe('a class as the schema of a job', () => {
  const fixture = engineFixture();

  it('gives each execution an instance made of what was stored', async () => {
    const policy = {
      version: 2,
      schema: classSchema<Price, { cents: string; from: Date | string }>(Price),
      upcast: (stored: unknown) => ({ cents: stored, from: '2031-01-01T00:00:00.000Z' }),
      backoff: { type: 'none' as const },
    };
    const texts: unknown[] = [];
    const node = await fixture.node({
      handlers: {
        work: {
          policy,
          run: (payload, { execution }) => {
            texts.push(payload instanceof Price && payload.text());
            if (execution === 1) throw new Error('once more');
          },
        },
      },
    });
    const Work: JobDefinition = defineJob('work', policy);
    const payload = await encodePayload(Work, { cents: '3', from: new Date('2030-06-01T00:00:00Z') }, 1_000);
    const done = node.count('settled', 2, ({ outcome }) => outcome === 'succeeded');
    const [id] = await node.enqueue({ version: 2, payload }, { version: 1, payload: '"4"' });
    await node.runtime.start();
    await done;
    expect(texts.toSorted()).toEqual(['300 from 2030', '300 from 2030', '400 from 2031', '400 from 2031']);
    expect(await node.store.get(id!)).toMatchObject({
      payload: { cents: '3', from: '2030-06-01T00:00:00.000Z' },
    });
  });
});
