import type { Clock } from '../../platform/clock';
import { PermanentError } from '../../platform/errors';
import type { Logger } from '../../platform/logger';
import type { Signer } from '../../stellar/keys';
import { derivePrngSecret } from './seed-proof';

export interface RotatedKey {
  signer: Signer;
  /** When the current key took over, epoch ms. */
  rotatedAtMs: number;
}

export interface OracleKeyringOptions {
  current: Signer;
  /** The key before it: jobs that were queued under it still get their proof from it while the grace lasts. */
  previous?: RotatedKey;
  graceMs: number;
  /** When the current key was made, epoch ms, where known. */
  createdAtMs?: number;
  maxAgeMs: number;
  clock: Clock;
  logger: Logger;
}

/**
 * Which key signs for which job. A job remembers the key of the day it came in, so that a rotation between two of its
 * tries doesn't change its seed.
 */
export class OracleKeyring {
  private readonly prngSecrets = new Map<string, Buffer>();

  constructor(private readonly options: OracleKeyringOptions) {
    if (options.previous?.signer.publicKey === options.current.publicKey) {
      throw new PermanentError('ORACLE_KEY_NOT_ROTATED', 'the previous oracle key is the current one');
    }
  }

  get currentPublicKey(): string {
    return this.options.current.publicKey;
  }

  /** Keys that may still sign: the current one first. */
  get activePublicKeys(): string[] {
    const previous = this.previousInGrace();
    return previous === null ? [this.currentPublicKey] : [this.currentPublicKey, previous.publicKey];
  }

  /** The job's own key while it may be used, else the current one: no queued job is lost to a rotation. */
  signerFor(publicKey: string): Signer {
    if (publicKey === this.currentPublicKey) return this.options.current;
    const previous = this.previousInGrace();
    if (previous?.publicKey === publicKey) return previous;
    this.options.logger.warn(
      { oracleKey: publicKey, currentKey: this.currentPublicKey },
      'a job was queued under an oracle key that is retired; the current key signs instead',
    );
    return this.options.current;
  }

  async prngSecretOf(signer: Signer): Promise<Buffer> {
    const known = this.prngSecrets.get(signer.publicKey);
    if (known !== undefined) return known;
    // Only an answer is remembered: a key service that was down, or that never answers, must be asked again.
    const derived = await derivePrngSecret((bytes) => signer.sign(bytes));
    this.prngSecrets.set(signer.publicKey, derived);
    return derived;
  }

  /** Logs a warning when the current key is older than it should get. Returns its age, or null where unknown. */
  checkAge(): { ageMs: number; tooOld: boolean } | null {
    const { createdAtMs, maxAgeMs, clock, logger } = this.options;
    if (createdAtMs === undefined) return null;
    const ageMs = clock.now() - createdAtMs;
    const tooOld = ageMs > maxAgeMs;
    if (tooOld) {
      logger.warn(
        { oracleKey: this.currentPublicKey, ageMs, maxAgeMs },
        'the oracle key is due for rotation',
      );
    }
    return { ageMs, tooOld };
  }

  private previousInGrace(): Signer | null {
    const { previous, graceMs, clock } = this.options;
    if (previous === undefined || clock.now() > previous.rotatedAtMs + graceMs) return null;
    return previous.signer;
  }
}
