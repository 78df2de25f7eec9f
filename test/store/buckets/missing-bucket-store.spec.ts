import { describe, expect, it } from '@jest/globals';
import { MissingBucketStore } from '../../../lib/store/missing-bucket-store.js';
import { PostgresBucketStore } from '../../../lib/store/postgres/postgres-bucket-store.js';
import { BucketStore } from '../../../lib/store/bucket-store.js';

describe('MissingBucketStore', () => {
  it('refuses whatever the port offers, and names the option', async () => {
    const store: object = new MissingBucketStore();
    expect(store).toBeInstanceOf(BucketStore);
    const methods = Object.getOwnPropertyNames(PostgresBucketStore.prototype).filter(
      (name) => name !== 'constructor',
    );
    expect(methods).toContain('drainNode');
    for (const method of methods) {
      const call = (store as Record<string, () => Promise<unknown>>)[method]!;
      await expect(call()).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('bucketStore'),
      });
    }
  });
});
