import { createHash } from 'node:crypto';

/**
 * - raw: CIDv1 (`bafkrei…`) whose multihash is the SHA-256 of the bytes themselves.
 * - dag-pb-v0: CIDv0 (`Qm…`) of the bytes as one UnixFS file block: what `ipfs add` gives up to 256 KiB. Longer content
 *   is not split into blocks here, so its CID differs from a real node's.
 */
export type CidCodec = 'raw' | 'dag-pb-v0';

const rawCodec = 0x55;
const sha256Code = 0x12;

const varint = (value: number): number[] => {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return [...bytes, rest];
};

/** Protobuf: PBNode { Data: UnixFS { Type: File, Data: bytes, filesize } }. */
const unixFsBlock = (bytes: Uint8Array): Buffer => {
  const file = Buffer.concat([
    Buffer.from([0x08, 0x02]),
    ...(bytes.length > 0 ? [Buffer.from([0x12, ...varint(bytes.length)]), bytes] : []),
    Buffer.from([0x18, ...varint(bytes.length)]),
  ]);
  return Buffer.concat([Buffer.from([0x0a, ...varint(file.length)]), file]);
};

export const cidOf = async (bytes: Uint8Array, codec: CidCodec): Promise<string> => {
  // These packages are ES modules only, so CommonJS output has to load them while running.
  const [{ CID }, { create }] = await Promise.all([
    import('multiformats/cid'),
    import('multiformats/hashes/digest'),
  ]);
  const block = codec === 'raw' ? bytes : unixFsBlock(bytes);
  const digest = create(sha256Code, createHash('sha256').update(block).digest());
  return codec === 'raw' ? CID.createV1(rawCodec, digest).toString() : CID.createV0(digest).toString();
};
