/** A form of Stellar's keys: base32 of one version byte, 32 bytes, and a CRC16-XModem of the 33 with its low byte first. */
export interface StrkeyForm {
  letters: RegExp;
  version: number;
  /** With its article, for reports. */
  what: string;
  /** The same without. */
  name: string;
}

export const strkeyForms = {
  contractId: {
    letters: /^C[A-Z2-7]{55}$/,
    version: 2 << 3,
    what: 'a C… contract id',
    name: 'C… contract id',
  },
  secretKey: {
    letters: /^S[A-Z2-7]{55}$/,
    version: 18 << 3,
    what: 'an S… secret key',
    name: 'S… secret key',
  },
} as const satisfies Record<string, StrkeyForm>;

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const CHECKSUM_BYTES = 2;

/** What is wrong with a key; null when nothing is. The key is not repeated: it may be a secret. */
export function strkeyProblem({ letters, version, what, name }: StrkeyForm, text: string): string | null {
  if (!letters.test(text)) return `expected ${what}`;
  const bytes = base32Bytes(text);
  const signed = bytes.subarray(0, -CHECKSUM_BYTES);
  return signed[0] === version && crc16(signed) === bytes.readUInt16LE(signed.length)
    ? null
    : `is not a valid ${name}: its checksum does not fit, so a letter is wrong`;
}

/** Of 56 letters, which are 35 bytes without a bit left over. */
function base32Bytes(text: string): Buffer {
  const bytes: number[] = [];
  let bits = 0;
  let held = 0;
  for (const letter of text) {
    bits = (bits << 5) | ALPHABET.indexOf(letter);
    held += 5;
    if (held < 8) continue;
    held -= 8;
    bytes.push((bits >> held) & 0xff);
    bits &= (1 << held) - 1;
  }
  return Buffer.from(bytes);
}

/** XModem: polynomial 0x1021, from zero, not reflected. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc;
}
