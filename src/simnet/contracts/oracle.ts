import { verifyEd25519 } from '../ed25519';
import { HostError } from '../host-error';
import { fromVal, toVal } from '../scval';
import type { ContractContext, SimContract } from './sim-contract';
import { contractFunction } from './sim-contract';
import { nextId, storageKey } from './storage-key';

export const oracleErrors = { invalidSignature: 3, unknownProvider: 4 } as const;

export const verificationRequestedTopic = 'verification_requested';

/** A submitted content hash is kept in temporary storage for this many ledgers. */
const requestLiveForLedgers = 100;

const providerKey = (provider: string) => storageKey('Provider', toVal.address(provider));
const contentKey = (id: bigint) => storageKey('Content', toVal.u64(id));

export interface VerificationRequestFields {
  manifest_cid: string;
  media_cid: string;
  requester: string;
}

const requestFields = fromVal.struct<VerificationRequestFields & Record<string, unknown>>({
  manifest_cid: fromVal.string,
  media_cid: fromVal.string,
  requester: fromVal.address,
});

export const verificationRequestVal = (request: VerificationRequestFields) =>
  toVal.struct({
    manifest_cid: toVal.string(request.manifest_cid),
    media_cid: toVal.string(request.media_cid),
    requester: toVal.address(request.requester),
  });

const emitRequest = (context: ContractContext, request: VerificationRequestFields): bigint => {
  const id = nextId(context, 'VerificationCounter');
  context.emit([toVal.symbol(verificationRequestedTopic), toVal.u64(id)], verificationRequestVal(request));
  return id;
};

export interface OracleGenesis {
  admin: string;
  registry: string;
  providers: string[];
}

/**
 * The oracle contract. The published one emits no events, so nothing on chain could start a verification;
 * this one adds `request_verification`, which emits `verification_requested`.
 */
export const oracleContract = ({ admin, registry, providers }: OracleGenesis): SimContract => {
  const setProvider = (value: boolean) =>
    contractFunction([fromVal.address], (context, provider) => {
      context.requireAuth(admin);
      context.set(providerKey(provider), toVal.bool(value));
      return toVal.void();
    });

  return {
    name: 'oracle',
    initialise: (context) => {
      for (const provider of providers) context.set(providerKey(provider), toVal.bool(true));
    },
    functions: {
      add_provider: setProvider(true),
      remove_provider: setProvider(false),
      is_provider: contractFunction([fromVal.address], (context, provider) =>
        toVal.bool(context.get(providerKey(provider))?.b() ?? false),
      ),
      verify_tee_hash: contractFunction([fromVal.bytesN(32)], (context, hash) =>
        context.call(registry, 'is_hash_verified', [toVal.bytes(hash)]),
      ),
      verify_attestation: contractFunction(
        [fromVal.bytesN(32), fromVal.bytesN(32), fromVal.bytes, fromVal.bytesN(64)],
        (context, provider, teeHash, payload, signature) => {
          const known = context.call(registry, 'is_verified', [toVal.bytes(teeHash), toVal.bytes(provider)]);
          if (!known.b())
            throw HostError.contract(oracleErrors.unknownProvider, 'provider or hash is not trusted');
          if (!verifyEd25519(provider, payload, signature)) {
            throw HostError.contract(oracleErrors.invalidSignature, 'attestation signature is wrong');
          }
          return toVal.bool(true);
        },
      ),
      submit_request: contractFunction([fromVal.bytesN(32)], (context, contentHash) => {
        const id = nextId(context, 'ContentCounter');
        context.set(contentKey(id), toVal.bytes(contentHash), {
          durability: 'temporary',
          liveForLedgers: requestLiveForLedgers,
        });
        return toVal.u64(id);
      }),
      request_verification: contractFunction([requestFields], (context, request) => {
        context.requireAuth(request.requester);
        return toVal.u64(emitRequest(context, request));
      }),
      /** Many requests in one transaction, in the admin's name: how a demo or a test fills the chain. */
      request_verifications: contractFunction([fromVal.vec(requestFields)], (context, requests) => {
        context.requireAuth(admin);
        return toVal.vec(requests.map((request) => toVal.u64(emitRequest(context, request))));
      }),
    },
  };
};
