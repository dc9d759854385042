import { HostError } from '../host-error';
import { fromVal, toVal } from '../scval';
import type { SimContract } from './sim-contract';
import { contractFunction } from './sim-contract';
import { nextId, storageKey } from './storage-key';

/**
 * Error codes of the provenance contract. The published contract panics without a code on a second mint;
 * here it has one, so that a worker can tell "already minted" from a failure.
 */
export const provenanceErrors = {
  /** `initialize` was called again. */
  alreadyInitialized: 1,
  /** No certificate has that id. */
  certificateNotFound: 2,
  /** A certificate of that manifest hash exists: ask `get_certificate_by_manifest` whose it is. */
  duplicateManifest: 3,
} as const;

const certificateKey = (id: bigint) => storageKey('Certificate', toVal.u64(id));
const manifestKey = (manifestHash: string) => storageKey('Manifest', toVal.string(manifestHash));
const oracleKey = storageKey('Oracle');

export const certificateMintedTopic = 'certificate_minted';

const details = fromVal.struct<{ storage_id: string; manifest_hash: string; attestation_hash: string }>({
  storage_id: fromVal.string,
  manifest_hash: fromVal.string,
  attestation_hash: fromVal.string,
});

/** Certificates by id and by manifest hash: one manifest is minted once. */
export const provenanceContract = (oracle: string): SimContract => ({
  name: 'provenance',
  initialise: (context) => context.set(oracleKey, toVal.address(oracle)),
  functions: {
    initialize: contractFunction([fromVal.address], (_context, _oracle) => {
      throw HostError.contract(provenanceErrors.alreadyInitialized, 'already initialized');
    }),

    mint: contractFunction([fromVal.address, details], (context, owner, certificate) => {
      context.requireAuth(oracle);
      const byManifest = manifestKey(certificate.manifest_hash);
      if (context.get(byManifest)) {
        throw HostError.contract(provenanceErrors.duplicateManifest, 'a certificate of this manifest exists');
      }
      const id = nextId(context, 'CertificateCounter');
      context.set(byManifest, toVal.u64(id));
      context.set(
        certificateKey(id),
        toVal.struct({
          owner: toVal.address(owner),
          storage_id: toVal.string(certificate.storage_id),
          manifest_hash: toVal.string(certificate.manifest_hash),
          attestation_hash: toVal.string(certificate.attestation_hash),
        }),
      );
      context.emit(
        [
          toVal.symbol(certificateMintedTopic),
          toVal.address(owner),
          toVal.u64(id),
          toVal.string(certificate.manifest_hash),
        ],
        toVal.struct({}),
      );
      return toVal.u64(id);
    }),

    get_certificate: contractFunction([fromVal.u64], (context, id) => {
      const certificate = context.get(certificateKey(id));
      if (!certificate) throw HostError.contract(provenanceErrors.certificateNotFound, 'no such certificate');
      return certificate;
    }),

    /** The certificate id of a manifest hash, or void. */
    get_certificate_by_manifest: contractFunction([fromVal.string], (context, manifestHash) =>
      toVal.option(context.get(manifestKey(manifestHash))),
    ),
  },
});
