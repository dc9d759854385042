import { PermanentError, RejectedError } from '../platform/errors';
import { type ContractCall, type ContractValue, contractValue } from '../stellar/contract-value';
import type { ContractReader, Evidence } from '../stellar/submission';

/** The provenance contract's "a certificate of this manifest exists". */
export const DUPLICATE_MANIFEST = 3;

export interface CertificateDetails {
  owner: string;
  manifestHash: string;
  attestationHash: string;
}

export interface MintRequest {
  owner: string;
  /** CID under which the certified media is stored. */
  storageId: string;
  manifestHash: string;
  attestationHash: string;
}

export interface ProvenanceOptions {
  /** C… strkey. */
  contractId: string;
  /** `(manifest_hash: String) -> Option<u64>`. */
  lookupFunction: string;
  reader: ContractReader;
}

/** What the pipeline asks of the provenance contract, in its own words. */
export class Provenance {
  readonly #options: ProvenanceOptions;

  constructor(options: ProvenanceOptions) {
    this.#options = options;
  }

  mintCall(request: MintRequest): ContractCall {
    return this.#call('mint', [
      contractValue.address(request.owner),
      contractValue.struct({
        storage_id: contractValue.string(request.storageId),
        manifest_hash: contractValue.string(request.manifestHash),
        attestation_hash: contractValue.string(request.attestationHash),
      }),
    ]);
  }

  /**
   * Whether the manifest has a certificate, and whether it is the one that `request` would mint. The attestation hash
   * decides: it covers the request's own identity, so no other request can have the same one.
   */
  async findMint(request: MintRequest, signal: AbortSignal): Promise<Evidence | null> {
    const certificateId = await this.#findCertificateId(request.manifestHash, signal);
    if (certificateId === null) return null;
    const details = await this.certificate(certificateId, signal);
    const ours = details.attestationHash === request.attestationHash;
    return {
      ours,
      returnValue: contractValue.u64(certificateId),
      summary: `certificate ${certificateId} of this manifest is ${ours ? 'ours' : `another request's (owner ${details.owner})`}`,
    };
  }

  /** @throws RejectedError when there is no such certificate. */
  async certificate(id: bigint, signal: AbortSignal): Promise<CertificateDetails> {
    const call = this.#call('get_certificate', [contractValue.u64(id)]);
    const fields = structFields(await this.#options.reader.read(call, signal));
    return {
      owner: textOf(fields.get('owner')),
      manifestHash: textOf(fields.get('manifest_hash')),
      attestationHash: textOf(fields.get('attestation_hash')),
    };
  }

  async #findCertificateId(manifestHash: string, signal: AbortSignal): Promise<bigint | null> {
    const call = this.#call(this.#options.lookupFunction, [contractValue.string(manifestHash)]);
    let found: ContractValue;
    try {
      found = await this.#options.reader.read(call, signal);
    } catch (error) {
      // A deployment of the contract without a lookup refuses the call. Then the chain can't be asked beforehand, and
      // its own refusal of a second mint is what remains.
      if (error instanceof RejectedError) return null;
      throw error;
    }
    return found.type === 'u64' ? found.value : null;
  }

  #call(functionName: string, args: ContractValue[]): ContractCall {
    return { contractId: this.#options.contractId, functionName, args };
  }
}

/** @throws PermanentError when the contract returned anything but the id of a certificate. */
export function certificateIdOf(value: ContractValue | undefined): string {
  if (value?.type === 'u64') return value.value.toString();
  throw new PermanentError(
    'UNEXPECTED_CONTRACT_RESULT',
    'the provenance contract did not return a certificate id',
    {
      details: { type: value?.type },
    },
  );
}

function structFields(value: ContractValue): Map<string, ContractValue> {
  if (value.type !== 'map') {
    throw new PermanentError('UNEXPECTED_CONTRACT_RESULT', 'a certificate is not a struct', {
      details: { type: value.type },
    });
  }
  return new Map(
    value.value.flatMap(({ key, value: field }) =>
      key.type === 'symbol' ? [[key.value, field] as const] : [],
    ),
  );
}

/** A field that a certificate lacks reads as empty, and so equals nothing of ours. */
function textOf(value: ContractValue | undefined): string {
  return value?.type === 'string' || value?.type === 'address' ? value.value : '';
}
