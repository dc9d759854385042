import { PermanentError } from '../platform/errors';
import { contractValue } from '../stellar/contract-value';
import type { ContractReader } from '../stellar/submission';

export interface AuthorizationOptions {
  /** C… strkeys. */
  registryContractId: string;
  oracleContractId: string;
  reader: ContractReader;
}

export interface Attestor {
  /** G… strkey, and the 32 bytes of the same key. */
  publicKey: string;
  rawPublicKey: Uint8Array;
  /** 64 hex digits. */
  codeMeasurementHash: string;
}

/**
 * Asks both contracts whether they trust our code and our key.
 * @throws PermanentError ATTESTATION_NOT_AUTHORIZED when either doesn't, TransientError when they can't be asked.
 */
export async function assertAuthorized(
  options: AuthorizationOptions,
  attestor: Attestor,
  signal: AbortSignal,
): Promise<void> {
  const { reader, registryContractId, oracleContractId } = options;
  const [verified, provider] = await Promise.all([
    reader.read(
      {
        contractId: registryContractId,
        functionName: 'is_verified',
        args: [
          contractValue.bytes(Buffer.from(attestor.codeMeasurementHash, 'hex')),
          contractValue.bytes(attestor.rawPublicKey),
        ],
      },
      signal,
    ),
    reader.read(
      {
        contractId: oracleContractId,
        functionName: 'is_provider',
        args: [contractValue.address(attestor.publicKey)],
      },
      signal,
    ),
  ]);
  const inRegistry = verified.type === 'bool' && verified.value;
  const atOracle = provider.type === 'bool' && provider.value;
  if (inRegistry && atOracle) return;
  throw new PermanentError(
    'ATTESTATION_NOT_AUTHORIZED',
    inRegistry
      ? 'the oracle contract does not know our key as a provider'
      : 'the registry contract does not trust our code measurement and key',
    { details: { inRegistry, atOracle, oracle: attestor.publicKey } },
  );
}
