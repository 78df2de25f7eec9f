import { afterAll, describe, expect, it } from '@jest/globals';
import { Inject, Injectable, Scope } from '@nestjs/common';
import {
  type ContextId,
  ContextIdFactory,
  type ContextIdStrategy,
  createContextId,
  DiscoveryModule,
  DiscoveryService,
  type HostComponentInfo,
  REQUEST,
} from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { Job } from '../../lib/decorators/job.decorator.js';
import { JobExplorer } from '../../lib/discovery/job.explorer.js';
import { JobMetadataAccessor } from '../../lib/discovery/job-metadata.accessor.js';
import { type JobContext } from '../../lib/jobs/job-context.js';

/** One tree per tenant, as Nest's documentation shows it. */
class PerTenant implements ContextIdStrategy<{ metadata: { tenant: string } }> {
  readonly #trees = new Map<string, ContextId>();

  attach(contextId: ContextId, request: { metadata: { tenant: string } }) {
    const { tenant } = request.metadata;
    const tree = this.#trees.get(tenant) ?? createContextId();
    this.#trees.set(tenant, tree);
    return {
      resolve: (info: HostComponentInfo) => (info.isTreeDurable ? tree : contextId),
      payload: { tenant },
    };
  }
}

@Injectable({ scope: Scope.REQUEST, durable: true })
class TenantPool {
  static made: string[] = [];
  constructor(@Inject(REQUEST) readonly request: { tenant: string }) {
    TenantPool.made.push(request.tenant);
  }
}

@Injectable()
class TenantJobs {
  constructor(private readonly pool: TenantPool) {}

  @Job('tenant.job')
  run(): string {
    return this.pool.request.tenant;
  }
}

describe('durable providers', () => {
  afterAll(() => {
    (ContextIdFactory as unknown as { strategy: undefined }).strategy = undefined;
  });

  it('are made once for each tenant, from what the strategy says', async () => {
    ContextIdFactory.apply(new PerTenant());
    const app = await Test.createTestingModule({
      imports: [DiscoveryModule],
      providers: [TenantPool, TenantJobs],
    }).compile();
    await app.init();
    const handler = new JobExplorer(app.get(DiscoveryService), new JobMetadataAccessor())
      .explore()
      .handlers.get('tenant.job');
    const outcomes: unknown[] = [];
    for (const tenant of ['a', 'b', 'a', 'b', 'a']) {
      outcomes.push(await handler?.invoke({}, { metadata: { tenant } } as unknown as JobContext));
    }
    expect(outcomes).toEqual(['a', 'b', 'a', 'b', 'a']);
    expect(TenantPool.made).toEqual(['a', 'b']);
    await app.close();
  });
});
