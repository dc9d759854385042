import type { xdr } from '@stellar/stellar-sdk';

/** Stroops for each resource; plain figures of the size that public networks charge. */
const perMillionInstructions = 2_500n;
const perReadEntry = 1_800n;
const perWrittenEntry = 9_000n;
const perWrittenKilobyte = 9_000n;
const flatEventFee = 10_000n;

/** The least resource fee, in stroops, for the resources that a transaction declares. */
export const minimumResourceFee = (resources: xdr.SorobanResources): bigint => {
  const footprint = resources.footprint();
  const written = BigInt(footprint.readWrite().length);
  const read = BigInt(footprint.readOnly().length) + written;
  return (
    (BigInt(resources.instructions()) * perMillionInstructions) / 1_000_000n +
    read * perReadEntry +
    written * perWrittenEntry +
    (BigInt(resources.writeBytes()) * perWrittenKilobyte) / 1024n +
    flatEventFee
  );
};
