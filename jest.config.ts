/** @jest-config-loader ts-node */
/** @jest-config-loader-options {"transpileOnly": true} */
import type { Config } from 'jest';

/** ES-module-only packages that Jest's CommonJS runtime has to compile before it can load them. */
const esmOnly = ['multiformats'];

const config: Config = {
  testEnvironment: 'node',
  roots: ['<rootDir>/__tests__'],
  testMatch: ['**/*.test.ts'],
  transform: {
    '^.+\\.(ts|js|mjs)$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2023' }, module: { type: 'commonjs' } },
    ],
  },
  transformIgnorePatterns: [`/node_modules/(?!(${esmOnly.join('|')})/)`],
  // Its export map has no entry for require(), which is all that Jest's CommonJS runtime asks for.
  moduleNameMapper: { '^multiformats/(.*)$': '<rootDir>/node_modules/multiformats/dist/src/$1.js' },
  globalSetup: '<rootDir>/__tests__/support/global-setup.ts',
  globalTeardown: '<rootDir>/__tests__/support/global-teardown.ts',
  testTimeout: 30_000,
  maxWorkers: 2,
};

export default config;
