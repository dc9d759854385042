import { createHash } from 'node:crypto';
import type { FieldProblem } from '../../platform/problem';
import { rawPublicKey, type Signer } from '../../stellar/keys';
import {
  type CommitmentOpening,
  commitmentOf,
  OPENING_BYTES,
  openingOf,
  revealedSeed,
} from './commit-reveal';
import type { OracleKeyring } from './oracle-keyring';
import type { RandomnessJob, StoredRandomness } from '../jobs/randomness-job.model';
import {
  isAmbiguous,
  type MessageVersion,
  randomnessMessage,
  type RandomnessSubject,
} from './randomness-message';
import {
  computePrng,
  computeVrf,
  PROOF_BYTES,
  type SeedMethod,
  SEED_BYTES,
  verifyPrng,
  verifyVrf,
} from './seed-proof';

export interface RandomnessGeneratorOptions {
  keyring: OracleKeyring;
  networkPassphrase: string;
  messageVersion: MessageVersion;
  /** Prize from which the seed has to be publicly verifiable. */
  vrfThresholdXlm: number;
}

export interface RandomnessClaim {
  contractId: string;
  requestId: string;
  raffleId: number | null;
  /** 128 hex digits; of a revealed commitment 96, its secret and nonce. */
  proof: string;
  /** 64 hex digits; left out: the one that follows from the proof. */
  seed?: string;
  /** 64 hex digits: what was committed to, for a reveal. */
  commitment?: string;
  /** G… of the key that is said to have made it; left out: the current one. */
  publicKey?: string;
}

export type RandomnessVerdict =
  /** `oracleKey`: the key is one that we sign with; any other proves only that its holder made the seed. */
  | { valid: true; method: SeedMethod; messageVersion: MessageVersion; seed: string; oracleKey: boolean }
  /** `commitment` (64 hex digits) is what the raffle has to have held since before its draw. */
  | { valid: true; method: 'COMMIT_REVEAL'; commitment: string; seed: string }
  | { valid: false; oracleKey?: boolean };

/** What randomness is made from. */
export type RandomnessSeeker = Pick<
  RandomnessJob,
  'contractId' | 'contractRequestId' | 'raffleId' | 'oracleKey' | 'prizeXlm'
>;

/** The one place that makes and checks randomness: for workers, rescue and the verify route alike. */
export class RandomnessGenerator {
  readonly #options: RandomnessGeneratorOptions;

  constructor(options: RandomnessGeneratorOptions) {
    this.#options = options;
  }

  /** G… of each key that may still sign. */
  get activeKeys(): string[] {
    return this.#options.keyring.activePublicKeys;
  }

  /** What keeps a proof from being made for this request; null when nothing does. */
  problemOf(subject: { requestId: string; raffleId: number | null }): FieldProblem | null {
    return isAmbiguous(subject, this.#options.messageVersion)
      ? {
          field: 'requestId',
          problem: 'has just the length with which its message could be a transaction’s hash',
        }
      : null;
  }

  /** A prize that nobody could tell may be a large one. */
  methodFor(prizeXlm: number | null): SeedMethod {
    return prizeXlm === null || prizeXlm >= this.#options.vrfThresholdXlm ? 'VRF' : 'PRNG';
  }

  signerFor(job: Pick<RandomnessJob, 'oracleKey'>): Signer {
    return this.#options.keyring.signerFor(job.oracleKey);
  }

  /** The same job, key and method always give the same randomness. */
  async generate(job: Omit<RandomnessSeeker, 'prizeXlm'>, method: SeedMethod): Promise<StoredRandomness> {
    const { keyring, messageVersion } = this.#options;
    const signer = this.signerFor(job);
    const message = randomnessMessage(
      this.#subject(job.contractId, job.contractRequestId, job.raffleId),
      messageVersion,
    );
    const { seed, proof } =
      method === 'VRF'
        ? await computeVrf(message, (bytes) => signer.sign(bytes))
        : computePrng(message, await keyring.prngSecretOf(signer));
    return {
      method,
      messageVersion,
      seed: seed.toString('hex'),
      proof: proof.toString('hex'),
      oracleKey: signer.publicKey,
    };
  }

  /** Opens what was committed to when the raffle was created. */
  reveal(
    job: Pick<RandomnessSeeker, 'oracleKey'>,
    { secret, nonce }: CommitmentOpening,
    raffleId: number,
  ): StoredRandomness {
    return {
      method: 'COMMIT_REVEAL',
      messageVersion: this.#options.messageVersion,
      seed: revealedSeed({ secret, nonce }, raffleId).toString('hex'),
      proof: Buffer.concat([secret, nonce]).toString('hex'),
      oracleKey: this.signerFor(job).publicKey,
    };
  }

  /** VRF proofs by any key; PRNG proofs only where we hold the key that made them. */
  async verify(claim: RandomnessClaim): Promise<RandomnessVerdict> {
    const { keyring } = this.#options;
    const publicKey = claim.publicKey ?? keyring.currentPublicKey;
    const proof = Buffer.from(claim.proof, 'hex');
    if (proof.length === OPENING_BYTES) return verifyReveal(claim, openingOf(proof));
    const seed =
      claim.seed === undefined ? createHash('sha256').update(proof).digest() : Buffer.from(claim.seed, 'hex');
    const oracleKey = keyring.activePublicKeys.includes(publicKey);
    if (proof.length !== PROOF_BYTES || seed.length !== SEED_BYTES) return { valid: false, oracleKey };
    const prngSecret = oracleKey ? await keyring.prngSecretOf(keyring.signerFor(publicKey)) : null;
    const subject = this.#subject(claim.contractId, claim.requestId, claim.raffleId);
    for (const messageVersion of [1, 2] as const) {
      if (isAmbiguous(subject, messageVersion)) continue;
      const message = randomnessMessage(subject, messageVersion);
      const found = verifyVrf(message, { seed, proof }, publicKey)
        ? 'VRF'
        : prngSecret !== null && verifyPrng(message, { seed, proof }, prngSecret)
          ? 'PRNG'
          : null;
      if (found !== null) {
        return { valid: true, method: found, messageVersion, seed: seed.toString('hex'), oracleKey };
      }
    }
    return { valid: false, oracleKey };
  }

  /** @throws PermanentError INVALID_ADDRESS */
  publicKey(): { address: string; hex: string; base64: string } {
    const address = this.#options.keyring.currentPublicKey;
    const raw = Buffer.from(rawPublicKey(address));
    return { address, hex: raw.toString('hex'), base64: raw.toString('base64') };
  }

  #subject(contractId: string, requestId: string, raffleId: number | null): RandomnessSubject {
    return { networkPassphrase: this.#options.networkPassphrase, contractId, requestId, raffleId };
  }
}

/** Needs no key: the opening fits what was committed to, and the seed follows from it. */
function verifyReveal(
  { commitment, raffleId, seed }: Pick<RandomnessClaim, 'commitment' | 'raffleId' | 'seed'>,
  opening: CommitmentOpening,
): RandomnessVerdict {
  const opened = commitmentOf(opening).toString('hex');
  if (raffleId === null || opened !== commitment) return { valid: false };
  const revealed = revealedSeed(opening, raffleId).toString('hex');
  if (seed !== undefined && seed !== revealed) return { valid: false };
  return { valid: true, method: 'COMMIT_REVEAL', commitment, seed: revealed };
}
