import type { CID } from 'multiformats/cid';

/** Version 0 (base58 SHA-256) or version 1 in base32: the two forms that gateways agree on in a path. */
const FORM = /^(?:Qm[1-9A-HJ-NP-Za-km-z]{44}|b[a-z2-7]{20,120})$/;
const RAW_CODEC = 0x55;
const SHA2_256 = 0x12;

export interface ContentId {
  /** As it goes into the gateway's path. */
  text: string;
  /** SHA-256 of the content itself in hex, where the id tells it (raw codec); null where only a gateway can tell. */
  contentSha256: string | null;
}

/** Null for anything that is not a well-formed CID in one of the two forms. */
export async function parseContentId(text: string): Promise<ContentId | null> {
  if (!FORM.test(text)) return null;
  // The package is ES-module only, and this code is CommonJS.
  const { CID } = await import('multiformats/cid');
  let cid: CID;
  try {
    cid = CID.parse(text);
  } catch {
    return null;
  }
  const hashesContent = cid.code === RAW_CODEC && cid.multihash.code === SHA2_256;
  return {
    text,
    contentSha256: hashesContent ? Buffer.from(cid.multihash.digest).toString('hex') : null,
  };
}
