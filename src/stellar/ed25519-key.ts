const FIELD_PRIME = 2n ** 255n - 19n;
const KEY_BYTES = 32;

/** y of a point of order 8; the other one is its negative. */
const orderEightY = 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n;

/** y of the points whose order divides 8: of order 1, 2, 4 and twice 8. Each stands for both signs of x. */
const smallOrderYs: readonly bigint[] = [1n, FIELD_PRIME - 1n, 0n, orderEightY, FIELD_PRIME - orderEightY];

/**
 * Whether a signature under this key says anything. Under a key of small order one signature fits many messages, so that
 * anyone can make it; and a key that may be written in two ways is two keys to whoever compares their bytes. The
 * runtime's own check takes both.
 */
export function isSoundKey(raw: Uint8Array): boolean {
  if (raw.length !== KEY_BYTES) return false;
  const bigEndian = Buffer.from(raw).reverse();
  bigEndian[0] = (bigEndian[0] ?? 0) & 0x7f;
  const y = BigInt(`0x${bigEndian.toString('hex')}`);
  return y < FIELD_PRIME && !smallOrderYs.includes(y);
}
