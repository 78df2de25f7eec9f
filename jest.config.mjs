/** ESM mode: Nest 12 ships ES modules only. */
export default {
  testEnvironment: 'node',
  roots: ['<rootDir>/test', '<rootDir>/sample'],
  testMatch: ['**/*.spec.ts'],
  testPathIgnorePatterns: ['/node_modules/', '/dist/', '/fixtures/'],
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/sample/dist/'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          target: 'es2022',
          keepClassNames: true,
        },
        module: { type: 'es6' },
        sourceMaps: 'inline',
      },
    ],
  },
  moduleNameMapper: {
    '^(\\.{1,2}/.*)\\.js$': '$1',
    '^nestjs-ratchet$': '<rootDir>/lib/index.ts',
    '^nestjs-ratchet/class-validator$': '<rootDir>/lib/class-validator/index.ts',
    '^nestjs-ratchet/embedded$': '<rootDir>/lib/embedded/index.ts',
    '^nestjs-ratchet/health$': '<rootDir>/lib/health/index.ts',
    '^nestjs-ratchet/testing$': '<rootDir>/lib/testing/index.ts',
  },
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.mjs',
  setupFilesAfterEnv: ['<rootDir>/test/support/setup.ts'],
  maxWorkers: 2,
  testTimeout: 30000,
};
