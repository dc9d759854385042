import type { Logger } from '../platform/logger';
import { verifySignature } from '../stellar/keys';
import type { RaffleContract } from './contracts/raffle-contract';
import type { GlobalSlots } from './processing/global-slots';
import type { MetricsCache } from './jobs/metrics-cache';
import type { OracleKeyring } from './seeds/oracle-keyring';
import { unlessAborted } from './processing/phase-deadline';
import { taggedBytes } from './seeds/randomness-message';

export interface UpkeepDeps {
  keyring: OracleKeyring;
  contract: RaffleContract;
  /** Null where a factory's raffles are all there is: there is nothing to check before the first. */
  contractId: string | null;
  metricsCache: MetricsCache;
  globalSlots: GlobalSlots | null;
  logger: Logger;
}

const KEY_CHECK_INTERVAL_MS = 86_400_000;
const CHECK_TIMEOUT_MS = 30_000;

/** Checks what can only be checked at run time, and warns. None of it keeps the process from starting: all of it may mend itself. */
export function startUpkeep(deps: UpkeepDeps): () => Promise<void> {
  const stopping = new AbortController();
  deps.keyring.checkAge();
  const keyCheck = setInterval(() => deps.keyring.checkAge(), KEY_CHECK_INTERVAL_MS).unref();
  const checks = Promise.allSettled([
    checkInterface(deps, stopping.signal),
    checkSigners(deps, stopping.signal),
    warmMetrics(deps),
  ]);
  return async () => {
    clearInterval(keyCheck);
    stopping.abort();
    deps.globalSlots?.close();
    deps.metricsCache.close();
    await checks;
  };
}

async function checkInterface(
  { contract, contractId, logger }: UpkeepDeps,
  stopping: AbortSignal,
): Promise<void> {
  if (contractId === null) return;
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(CHECK_TIMEOUT_MS)]);
  const facts = { contractId, interfaceName: contract.interfaceName };
  try {
    const check = await contract.checkInterface(contractId, signal);
    if (check.kind === 'present') logger.info(facts, 'the raffle contract has the function that delivers');
    else
      logger.error(
        { ...facts, problem: check.problem },
        check.kind === 'absent'
          ? 'RAFFLE_CONTRACT_INTERFACE does not fit RAFFLE_CONTRACT_ID'
          : 'RAFFLE_CONTRACT_ID: there is no such contract on this network',
      );
  } catch (error) {
    if (!stopping.aborted) logger.warn({ ...facts, err: error }, 'the raffle contract could not be checked');
  }
}

/**
 * A key service that signs with another curve, or another key, would make proofs that no contract takes, and each job would
 * find out by itself. What is signed here can't be had as a proof: see the mark of {@link taggedBytes}.
 */
async function checkSigners({ keyring, logger }: UpkeepDeps, stopping: AbortSignal): Promise<void> {
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(CHECK_TIMEOUT_MS)]);
  const message = taggedBytes('self-check:1');
  const check = async (oracleKey: string): Promise<void> => {
    try {
      const signature = await unlessAborted(keyring.signerFor(oracleKey).sign(message), signal);
      if (!verifySignature(oracleKey, message, signature))
        logger.error(
          { oracleKey },
          'what the oracle key signs does not verify: no contract will take its proofs',
        );
    } catch (error) {
      if (!stopping.aborted) logger.warn({ oracleKey, err: error }, 'the oracle key could not be checked');
    }
  };
  await Promise.all(keyring.activePublicKeys.map(check));
}

/** So that nobody waits for the first count. */
async function warmMetrics({ metricsCache, logger }: UpkeepDeps): Promise<void> {
  try {
    await metricsCache.refresh();
  } catch (error) {
    logger.warn({ err: error }, 'the figures of the randomness queue could not be counted');
  }
}
