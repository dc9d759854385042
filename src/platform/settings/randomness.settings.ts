import type { z } from 'zod';
import { strkeyForms } from './strkey';
import { variable } from './variables';

export const randomnessSettings = {
  RAFFLE_CONTRACT_ID: variable.optionalStrkey(
    strkeyForms.contractId,
    'The raffle contract. Without it, and without RAFFLE_FACTORY_CONTRACT_ID, the randomness pipeline is off.',
  ),
  RAFFLE_FACTORY_CONTRACT_ID: variable.optionalStrkey(
    strkeyForms.contractId,
    'Contract that makes raffles (provide_randomness only): those that it announces by RAFFLE_CREATED_TOPIC are followed until they are over.',
  ),
  RAFFLE_CONTRACT_INTERFACE: variable.choice(
    ['receive_randomness', 'provide_randomness'],
    'receive_randomness',
    'Which function delivers: receive_randomness(raffle_id, seed, proof), or provide_randomness(random_seed, public_key, proof, request_id) of raffles that are contracts of their own.',
  ),
  ORACLE_SECRET_KEY: variable.optionalStrkey(
    strkeyForms.secretKey,
    'Key that proves randomness. Default: STELLAR_ORACLE_SECRET_KEY.',
    { secret: true },
  ),
  ORACLE_PREVIOUS_SECRET_KEY: variable.optionalStrkey(
    strkeyForms.secretKey,
    'The key before the last rotation; proves jobs that were queued under it while ORACLE_KEY_GRACE_MS lasts.',
    { secret: true },
  ),
  ORACLE_KEY_ROTATED_AT: variable.optionalTime(
    'When ORACLE_SECRET_KEY took over from ORACLE_PREVIOUS_SECRET_KEY.',
  ),
  ORACLE_KEY_GRACE_MS: variable.ageMs(
    86_400_000,
    'How long the previous key still proves after a rotation.',
    {
      min: 0,
    },
  ),
  ORACLE_KEY_CREATED_AT: variable.optionalTime(
    'When the current key was made, for the warning about its age.',
  ),
  ORACLE_KEY_MAX_AGE_DAYS: variable.count(90, 'Age in days from which the current key is warned about.', {
    min: 1,
  }),
  ORACLE_MESSAGE_VERSION: variable.choice(
    ['auto', '1', '2'],
    'auto',
    'What a proof signs: 1 the plain request and raffle ids, as receive_randomness contracts expect; 2 bound to network and contract as well. auto: 1 for receive_randomness, 2 for provide_randomness.',
  ),
  VRF_THRESHOLD_XLM: variable.decimal(500, 'Prize in XLM from which randomness is a VRF; below it a PRNG.'),
  COMMIT_REVEAL_THRESHOLD_XLM: variable.decimal(
    0,
    'Prize in XLM from which the oracle commits to its randomness when the raffle is created, and reveals it for the draw (receive_randomness only). 0: off.',
  ),
  ORACLE_HIGH_VALUE_THRESHOLD_XLM: variable.decimal(
    10_000,
    'Prize in XLM from which a raffle has high priority.',
  ),
  ORACLE_MED_VALUE_THRESHOLD_XLM: variable.decimal(
    1_000,
    'Prize in XLM from which a raffle has normal priority; below it low.',
  ),
  ORACLE_HIGH_PRIORITY_SLA_MS: variable.ageMs(
    5_000,
    'Longest time of a high-priority raffle from its request’s ledger close to its confirmation; more is counted as a breach.',
  ),
  ORACLE_REQUEST_TIMEOUT_LEDGERS: variable.count(
    200,
    'Ledgers after its request from which a raffle may fall back; nothing is sent later. 0 for no limit.',
  ),
  QUEUE_MAX_RETRIES: variable.count(5, 'Tries of a randomness job before it is dead-lettered.', { min: 1 }),
  QUEUE_INITIAL_BACKOFF_MS: variable.durationMs(
    2_000,
    'Back-off before the second try; full jitter up to it.',
  ),
  QUEUE_BACKOFF_MULTIPLIER: variable.decimal(2, 'Growth of the back-off per try.', { min: 1 }),
  QUEUE_MAX_BACKOFF_MS: variable.durationMs(60_000, 'Longest back-off.'),
  QUEUE_GENERATION_TIMEOUT_MS: variable.durationMs(
    15_000,
    'Longest time of the generating phase, reading the raffle included.',
  ),
  QUEUE_SUBMISSION_TIMEOUT_MS: variable.durationMs(45_000, 'Longest time of the submitting phase.'),
  QUEUE_CONFIRMATION_TIMEOUT_MS: variable.durationMs(30_000, 'Longest time of the confirming phase.'),
  QUEUE_MAX_CONCURRENCY: variable.count(
    10,
    'Jobs that one process generates, submits and confirms at one time.',
    { min: 1 },
  ),
  QUEUE_GLOBAL_CONCURRENCY: variable.count(0, 'The same across all processes; 0 for no limit.'),
  QUEUE_HIGH_PRIORITY_RESERVED: variable.count(
    2,
    'Of QUEUE_MAX_CONCURRENCY (and of the global limit), slots that only high-priority raffles may take.',
  ),
  QUEUE_LEASE_MS: variable.durationMs(
    60_000,
    'How long a claim or a slot lasts unless it is renewed, which happens every third of it. Work of a dead process is taken over after so long.',
    { min: 1000 },
  ),
  QUEUE_JOB_RETENTION_MS: variable.ageMs(
    3_600_000,
    'How long ended jobs are kept. Dead letters are kept until they are dealt with.',
  ),
  RAFFLE_CREATED_TOPIC: variable.text(
    'raffle_created',
    'First topic of the event that tells of a new raffle: for commitments, and for raffles that are contracts of their own.',
  ),
  RANDOMNESS_REQUESTED_TOPIC: variable.text(
    'randomness_requested',
    'First topic of the event that asks for randomness.',
  ),
  RANDOMNESS_RECEIVED_TOPIC: variable.text(
    'randomness_received',
    'First topic of the event that tells of delivered randomness.',
  ),
} as const;

type Checked = Readonly<z.infer<z.ZodObject<typeof randomnessSettings>>> & {
  readonly STELLAR_CHANNEL_WAIT_MS: number;
};

export const randomnessChecks = [
  {
    variables: ['STELLAR_CHANNEL_WAIT_MS', 'QUEUE_SUBMISSION_TIMEOUT_MS'],
    problem: (config: Checked): string | null =>
      config.STELLAR_CHANNEL_WAIT_MS < config.QUEUE_SUBMISSION_TIMEOUT_MS
        ? null
        : 'expected less than QUEUE_SUBMISSION_TIMEOUT_MS: a delivery that only waited would count as one that failed',
  },
  {
    variables: ['ORACLE_KEY_ROTATED_AT', 'ORACLE_PREVIOUS_SECRET_KEY'],
    problem: (config: Checked): string | null =>
      (config.ORACLE_KEY_ROTATED_AT === undefined) === (config.ORACLE_PREVIOUS_SECRET_KEY === undefined)
        ? null
        : 'goes together with ORACLE_PREVIOUS_SECRET_KEY: expected both or neither, for the grace period of the one runs from the other',
  },
  {
    variables: [
      'QUEUE_LEASE_MS',
      'QUEUE_GENERATION_TIMEOUT_MS',
      'QUEUE_SUBMISSION_TIMEOUT_MS',
      'QUEUE_CONFIRMATION_TIMEOUT_MS',
    ],
    problem: (config: Checked): string | null => {
      const longestPhaseMs = Math.max(
        config.QUEUE_GENERATION_TIMEOUT_MS,
        config.QUEUE_SUBMISSION_TIMEOUT_MS,
        config.QUEUE_CONFIRMATION_TIMEOUT_MS,
      );
      // Renewals keep a lease alive, but a holder that stops renewing must not be overtaken in the middle of one phase.
      return config.QUEUE_LEASE_MS > longestPhaseMs
        ? null
        : `expected more than the longest phase, ${longestPhaseMs} ms: the largest of QUEUE_GENERATION_TIMEOUT_MS, QUEUE_SUBMISSION_TIMEOUT_MS and QUEUE_CONFIRMATION_TIMEOUT_MS`;
    },
  },
] as const;
