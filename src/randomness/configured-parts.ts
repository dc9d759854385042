import type { Connection } from 'mongoose';
import type { z } from 'zod';
import type { Clock } from '../platform/clock';
import type { WorkerId } from '../platform/ids';
import type { Logger } from '../platform/logger';
import type { randomnessSettings } from '../platform/settings/randomness.settings';
import type { RetryPolicy } from '../queue/retry-policy';
import { type Signer, signerFromSecret } from '../stellar/keys';
import { GlobalSlots } from './processing/global-slots';
import type { MessageVersion } from './seeds/randomness-message';
import { OracleKeyring } from './seeds/oracle-keyring';
import { checkedThresholds, defaultPriorityThresholds, type PriorityThresholds } from './jobs/priority';
import { LocalSlots, type ProcessingSlots } from './processing/processing-slots';
import type { QueueConfig } from './http/queue-health.routes';

/** Under the names of their variables, so that the parsed configuration is one. */
export type RandomnessSettings = Readonly<z.infer<z.ZodObject<typeof randomnessSettings>>>;

const DAY_MS = 86_400_000;

/**
 * What the pipeline serves: one configured contract, the raffles of a factory, or both. Null where neither is told: then it
 * is off. A factory makes contracts, so one alone is no use to an interface with numbered raffles.
 */
export function servedBy(settings: RandomnessSettings): { contractId: string | null } | null {
  const { RAFFLE_CONTRACT_ID, RAFFLE_FACTORY_CONTRACT_ID, RAFFLE_CONTRACT_INTERFACE } = settings;
  if (RAFFLE_CONTRACT_ID !== undefined) return { contractId: RAFFLE_CONTRACT_ID };
  const isFactoryOfUse =
    RAFFLE_FACTORY_CONTRACT_ID !== undefined && RAFFLE_CONTRACT_INTERFACE === 'provide_randomness';
  return isFactoryOfUse ? { contractId: null } : null;
}

/** Of the messages that proofs sign. */
export function messageVersionOf(settings: RandomnessSettings): MessageVersion {
  const { ORACLE_MESSAGE_VERSION, RAFFLE_CONTRACT_INTERFACE } = settings;
  if (ORACLE_MESSAGE_VERSION !== 'auto') return ORACLE_MESSAGE_VERSION === '1' ? 1 : 2;
  return RAFFLE_CONTRACT_INTERFACE === 'receive_randomness' ? 1 : 2;
}

export const retryPolicyOf = (settings: RandomnessSettings): RetryPolicy => ({
  baseMs: settings.QUEUE_INITIAL_BACKOFF_MS,
  multiplier: settings.QUEUE_BACKOFF_MULTIPLIER,
  capMs: settings.QUEUE_MAX_BACKOFF_MS,
});

export function queueConfigOf(settings: RandomnessSettings): QueueConfig {
  return {
    maxRetries: settings.QUEUE_MAX_RETRIES,
    initialBackoffMs: settings.QUEUE_INITIAL_BACKOFF_MS,
    backoffMultiplier: settings.QUEUE_BACKOFF_MULTIPLIER,
    maxBackoffMs: settings.QUEUE_MAX_BACKOFF_MS,
    confirmationTimeoutMs: settings.QUEUE_CONFIRMATION_TIMEOUT_MS,
    maxConcurrency: settings.QUEUE_MAX_CONCURRENCY,
    generationTimeoutMs: settings.QUEUE_GENERATION_TIMEOUT_MS,
    submissionTimeoutMs: settings.QUEUE_SUBMISSION_TIMEOUT_MS,
  };
}

export function slotsOf(
  settings: RandomnessSettings,
  {
    connection,
    workerId,
    clock,
    logger,
  }: { connection: Connection; workerId: WorkerId; clock: Clock; logger: Logger },
): { slots: ProcessingSlots; globalSlots: GlobalSlots | null } {
  const reservedForUrgent = settings.QUEUE_HIGH_PRIORITY_RESERVED;
  const local = new LocalSlots({ max: settings.QUEUE_MAX_CONCURRENCY, reservedForUrgent });
  const max = settings.QUEUE_GLOBAL_CONCURRENCY;
  if (max === 0) return { slots: local, globalSlots: null };
  const leaseMs = settings.QUEUE_LEASE_MS;
  const globalSlots = new GlobalSlots({
    connection,
    local,
    limit: { max, reservedForUrgent },
    workerId,
    leaseMs,
    clock,
    logger,
  });
  return { slots: globalSlots, globalSlots };
}

/** `accountSigner` is used where no key of its own proves randomness. */
export function keyringOf(
  settings: RandomnessSettings,
  { accountSigner, clock, logger }: { accountSigner: Signer; clock: Clock; logger: Logger },
): OracleKeyring {
  const { ORACLE_SECRET_KEY, ORACLE_PREVIOUS_SECRET_KEY, ORACLE_KEY_ROTATED_AT, ORACLE_KEY_CREATED_AT } =
    settings;
  return new OracleKeyring({
    current: ORACLE_SECRET_KEY === undefined ? accountSigner : signerFromSecret(ORACLE_SECRET_KEY),
    graceMs: settings.ORACLE_KEY_GRACE_MS,
    maxAgeMs: settings.ORACLE_KEY_MAX_AGE_DAYS * DAY_MS,
    clock,
    logger,
    ...(ORACLE_PREVIOUS_SECRET_KEY === undefined || ORACLE_KEY_ROTATED_AT === undefined
      ? {}
      : {
          previous: {
            signer: signerFromSecret(ORACLE_PREVIOUS_SECRET_KEY),
            rotatedAtMs: Date.parse(ORACLE_KEY_ROTATED_AT),
          },
        }),
    ...(ORACLE_KEY_CREATED_AT === undefined ? {} : { createdAtMs: Date.parse(ORACLE_KEY_CREATED_AT) }),
  });
}

export function thresholdsOf(settings: RandomnessSettings, logger: Logger): PriorityThresholds {
  const configured = {
    highValueXlm: settings.ORACLE_HIGH_VALUE_THRESHOLD_XLM,
    mediumValueXlm: settings.ORACLE_MED_VALUE_THRESHOLD_XLM,
  };
  const checked = checkedThresholds(configured);
  if (checked === null) {
    logger.warn(
      { configured, used: defaultPriorityThresholds },
      'ORACLE_MED_VALUE_THRESHOLD_XLM is not below ORACLE_HIGH_VALUE_THRESHOLD_XLM; the defaults of both are used',
    );
  }
  return checked ?? defaultPriorityThresholds;
}
