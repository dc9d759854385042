import { HostError } from '../host-error';
import { fromVal, toVal } from '../scval';
import type { ContractContext, SimContract } from './sim-contract';
import { contractFunction } from './sim-contract';
import { nextId, storageKey } from './storage-key';

export const registryErrors = {
  notFound: 1,
  unauthorized: 2,
  invalidSignature: 3,
  invalidAttestation: 4,
  alreadyProcessed: 5,
  invalidTeeHash: 6,
  duplicateHash: 7,
} as const;

const teeHashKey = (hash: Uint8Array) => storageKey('TeeHash', toVal.bytes(hash));
const providerKey = (provider: Uint8Array) => storageKey('Provider', toVal.bytes(provider));
const requestKey = (id: bigint) => storageKey('Request', toVal.u64(id));

const holds = (context: ContractContext, key: ReturnType<typeof storageKey>): boolean =>
  context.get(key)?.b() ?? false;

const bytes32 = fromVal.bytesN(32);

export interface RegistryGenesis {
  admin: string;
  teeHashes: Uint8Array[];
  /** Raw Ed25519 keys. */
  providers: Uint8Array[];
}

/** Which code measurements and which signing keys are trusted. */
export const registryContract = ({ admin, teeHashes, providers }: RegistryGenesis): SimContract => {
  /** One admin function: it changes a flag and tells so. */
  const flag = (
    key: (value: Uint8Array) => ReturnType<typeof storageKey>,
    value: boolean,
    event: string,
    field: string,
    check?: (context: ContractContext, bytes: Uint8Array) => void,
  ) =>
    contractFunction([bytes32], (context, bytes) => {
      context.requireAuth(admin);
      check?.(context, bytes);
      context.set(key(bytes), toVal.bool(value));
      context.emit(
        [toVal.symbol('registry'), toVal.symbol(event), toVal.bytes(bytes)],
        toVal.struct({ [field]: toVal.bytes(bytes) }),
      );
      return toVal.void();
    });

  const hasTeeHash = contractFunction([bytes32], (context, hash) =>
    toVal.bool(holds(context, teeHashKey(hash))),
  );

  return {
    name: 'registry',
    initialise: (context) => {
      for (const hash of teeHashes) context.set(teeHashKey(hash), toVal.bool(true));
      for (const provider of providers) context.set(providerKey(provider), toVal.bool(true));
    },
    functions: {
      add_tee_hash: flag(teeHashKey, true, 'TeeHashAdded', 'hash', (context, hash) => {
        if (holds(context, teeHashKey(hash)))
          throw HostError.contract(registryErrors.duplicateHash, 'hash is known');
      }),
      remove_tee_hash: flag(teeHashKey, false, 'TeeHashRemoved', 'hash', (context, hash) => {
        if (!holds(context, teeHashKey(hash)))
          throw HostError.contract(registryErrors.notFound, 'hash is unknown');
      }),
      has_tee_hash: hasTeeHash,
      is_hash_verified: hasTeeHash,
      add_provider: flag(providerKey, true, 'ProviderAdded', 'provider'),
      remove_provider: flag(providerKey, false, 'ProviderRemoved', 'provider'),
      is_verified: contractFunction([bytes32, bytes32], (context, hash, provider) =>
        toVal.bool(holds(context, teeHashKey(hash)) && holds(context, providerKey(provider))),
      ),
      create_request: contractFunction([fromVal.address, bytes32], (context, requester, contentHash) => {
        context.requireAuth(requester);
        const id = nextId(context, 'RequestCounter');
        context.set(
          requestKey(id),
          toVal.struct({ requester: toVal.address(requester), content_hash: toVal.bytes(contentHash) }),
        );
        return toVal.u64(id);
      }),
      get_request: contractFunction([fromVal.u64], (context, id) => {
        const request = context.get(requestKey(id));
        if (!request) throw HostError.contract(registryErrors.notFound, 'no such request');
        return request;
      }),
    },
  };
};
