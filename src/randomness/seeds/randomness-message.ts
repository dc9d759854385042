import { createHash } from 'node:crypto';

/**
 * - 1: UTF-8 of the request id, then the raffle id as four big-endian bytes. What contracts in the field expect; the same
 *   on every network and for every contract.
 * - 2: the same facts bound to one network and one contract, so that a proof can't be replayed elsewhere.
 */
export type MessageVersion = 1 | 2;

/** What a seed is for. One subject and one key give one seed, for good. */
export interface RandomnessSubject {
  networkPassphrase: string;
  /** C… strkey of the raffle's contract. */
  contractId: string;
  /** As the contract counts it. */
  requestId: string;
  /** Null where a raffle is a contract of its own and has no number. */
  raffleId: number | null;
}

/**
 * No UTF-8 text and no XDR value that we sign starts with this byte, so nothing tagged with it can ever be passed off as
 * a version 1 message (whose first bytes the requester chooses) or as a contract's XDR message.
 */
const TAG_MARK = 0xff;
const MAX_U32 = 0xffff_ffff;
/** The oracle's key may be an account's, whose signature over so many bytes is one under a transaction. */
const HASH_BYTES = 32;

export const taggedBytes = (tag: string, ...parts: Uint8Array[]): Buffer =>
  Buffer.concat([Buffer.from([TAG_MARK]), Buffer.from(`sorolane:${tag}\0`, 'utf8'), ...parts]);

export function randomnessMessage(subject: RandomnessSubject, version: MessageVersion): Buffer {
  const requestId = Buffer.from(subject.requestId, 'utf8');
  if (requestId.length === 0) throw new RangeError('a request id has at least one character');
  const raffle = subject.raffleId === null ? Buffer.alloc(0) : u32(subject.raffleId);
  if (version === 1) {
    const plain = Buffer.concat([requestId, raffle]);
    if (plain.length === HASH_BYTES)
      throw new RangeError(`a version 1 message of ${HASH_BYTES} bytes could be a transaction's hash`);
    return plain;
  }
  return taggedBytes(
    'randomness:2',
    networkId(subject.networkPassphrase),
    lengthPrefixed(Buffer.from(subject.contractId, 'utf8')),
    lengthPrefixed(requestId),
    // Says whether a raffle id follows, so that "no raffle" and "raffle 0" differ.
    Buffer.from([raffle.length === 0 ? 0 : 1]),
    raffle,
  );
}

/** Whether a message of this request could be taken for something else that the key signs. */
export const isAmbiguous = (
  { requestId, raffleId }: Pick<RandomnessSubject, 'requestId' | 'raffleId'>,
  version: MessageVersion,
): boolean =>
  version === 1 && Buffer.byteLength(requestId, 'utf8') + (raffleId === null ? 0 : 4) === HASH_BYTES;

const networkId = (passphrase: string): Buffer => createHash('sha256').update(passphrase, 'utf8').digest();

const lengthPrefixed = (bytes: Buffer): Buffer => Buffer.concat([u32(bytes.length), bytes]);

function u32(value: number): Buffer {
  if (!Number.isInteger(value) || value < 0 || value > MAX_U32) {
    throw new RangeError(`a raffle id is a whole number from 0 to ${MAX_U32}`);
  }
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
