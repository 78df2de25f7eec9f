import { afterEach, describe, expect, it } from '@jest/globals';
import { RatchetModule } from 'nestjs-ratchet';

const copies = (globalThis as unknown as Record<symbol, Set<string>>)[Symbol.for('nestjs-ratchet:copies')]!;

describe('a second copy of the package in the process', () => {
  afterEach(() => {
    copies.delete('/srv/app/node_modules/billing/node_modules/nestjs-ratchet/');
  });

  it('is named, with the folders of both', () => {
    copies.add('/srv/app/node_modules/billing/node_modules/nestjs-ratchet/');
    expect(() => RatchetModule.forRoot({ dataSource: 'default' })).toThrow(
      expect.objectContaining({
        code: 'PACKAGE_LOADED_TWICE',
        message: expect.stringMatching(/2 copies \(.*billing\/node_modules\/nestjs-ratchet\//),
      }),
    );
  });

  it('is not what one copy is taken for', () => {
    expect(copies.size).toBe(1);
    expect(RatchetModule.forRoot({ dataSource: 'default' })).toMatchObject({
      module: RatchetModule,
      global: true,
    });
    expect(RatchetModule.forRoot({ dataSource: 'default', isGlobal: false })).toMatchObject({
      global: false,
    });
  });
});
