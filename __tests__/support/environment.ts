import { Keypair, StrKey } from '@stellar/stellar-sdk';

const contractId = (fill: number): string => StrKey.encodeContract(Buffer.alloc(32, fill));

/** Everything a process needs that has no default; all of it well-formed, none of it real. */
export function validEnvironment(): Record<string, string> {
  return {
    MONGODB_URI: 'mongodb://user:hunter2@127.0.0.1:27017/sorolane',
    API_KEYS: 'key-for-tests-0123456789',
    STELLAR_NETWORK_PASSPHRASE: 'Sorolane Simulated Network ; 2026',
    SOROBAN_RPC_URLS: 'http://127.0.0.1:8000',
    STELLAR_ORACLE_SECRET_KEY: Keypair.fromRawEd25519Seed(Buffer.alloc(32, 1)).secret(),
    STELLAR_REGISTRY_CONTRACT_ID: contractId(1),
    STELLAR_ORACLE_CONTRACT_ID: contractId(2),
    STELLAR_PROVENANCE_CONTRACT_ID: contractId(3),
    PINATA_GATEWAY_URL: 'http://127.0.0.1:8001/ipfs',
    ORACLE_CODE_MEASUREMENT_HASH: 'ab'.repeat(32),
  };
}
