import { Keypair, StrKey } from '@stellar/stellar-sdk';
import { z } from 'zod';
import { stellarChecks, stellarSettings } from '../../../src/platform/settings/stellar.settings';

const contractId = StrKey.encodeContract(Buffer.alloc(32, 1));
const environment = {
  STELLAR_NETWORK_PASSPHRASE: 'Test SDF Network ; September 2015',
  SOROBAN_RPC_URLS: 'https://one.example/key, https://two.example',
  STELLAR_ORACLE_SECRET_KEY: Keypair.random().secret(),
  STELLAR_REGISTRY_CONTRACT_ID: contractId,
  STELLAR_ORACLE_CONTRACT_ID: contractId,
  STELLAR_PROVENANCE_CONTRACT_ID: contractId,
};
const read = (overrides: Record<string, string> = {}) =>
  z.object(stellarSettings).parse({ ...environment, ...overrides });
const problems = (
  overrides: Record<string, string>,
  NODE_ENV: 'production' | 'development' | 'test' = 'production',
): (string | null)[] => stellarChecks.map(({ problem }) => problem({ ...read(overrides), NODE_ENV }));

describe('Stellar settings', () => {
  it('keep the order of the endpoints and hold together by default', () => {
    expect(read().SOROBAN_RPC_URLS).toEqual(['https://one.example/key', 'https://two.example']);
    expect(problems({})).toEqual([null, null]);
  });

  it.each(['', 'ftp://one.example', 'one.example'])('refuse %p as endpoints', (urls) => {
    expect(() => read({ SOROBAN_RPC_URLS: urls })).toThrow();
  });

  it('mark every secret', () => {
    const secret = Object.entries(stellarSettings)
      .filter(([, schema]) => (schema as z.ZodType).meta()?.['secret'] === true)
      .map(([name]) => name);
    expect(secret).toEqual(['SOROBAN_RPC_URLS', 'STELLAR_ORACLE_SECRET_KEY', 'STELLAR_CHANNEL_SECRETS']);
  });

  it('refuse a confirmation window that ends before the transaction does', () => {
    expect(problems({ STELLAR_TX_VALIDITY_MS: '120000' })[0]).toContain('STELLAR_TX_VALIDITY_MS');
  });

  it.each([
    ['http://rpc.example', 'production', false],
    ['http://127.0.0.1:8000/rpc', 'production', true],
    ['http://localhost:8000', 'production', true],
    ['http://[::1]:8000', 'production', true],
    ['http://localhost.example:8000', 'production', false],
    ['http://rpc.example', 'development', true],
  ] as const)('plain http: %s in %s', (url, mode, allowed) => {
    expect(problems({ SOROBAN_RPC_URLS: url }, mode)[1] === null).toBe(allowed);
  });
});
