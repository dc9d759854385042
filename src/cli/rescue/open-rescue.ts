import pino from 'pino';
import { describeConfigProblems, readConfig, secretsOf } from '../../platform/config';
import { connectDatabase } from '../../platform/database/connection';
import { ensureIndexes } from '../../platform/database/indexes';
import { PermanentError } from '../../platform/errors';
import { createLogger } from '../../platform/logger';
import { warnOfUnread } from '../../platform/settings/superseded';
import { deadLetterModel } from '../../queue/dead-letter.model';
import { DeadLetterRepository } from '../../queue/dead-letters';
import { createRandomnessPipeline, type RandomnessPipeline } from '../../randomness/randomness.pipeline';
import { createStellarLayer } from '../../stellar/stellar-layer';

/** For previews. */
export interface NetworkFacts {
  network: string;
  /** Without paths and credentials: providers put their keys there. */
  rpcUrls: string[];
  /** G… of the accounts that carry transactions in place of the oracle account. */
  channelAccounts: string[];
}

export interface OpenRescue {
  pipeline: RandomnessPipeline;
  network: NetworkFacts;
  close(): Promise<void>;
}

const STDERR = 2;

/**
 * The pipeline as the workers have it, without lanes. Logs go to stderr: stdout is the answer.
 * @throws PermanentError INVALID_CONFIGURATION, PIPELINE_OFF
 */
export async function openRescue(environment: Record<string, string | undefined>): Promise<OpenRescue> {
  // A command serves nobody, so it needs no keys to serve by.
  const result = readConfig({ ...environment, SOROLANE_ROLES: 'worker' });
  if (result.kind === 'invalid') {
    throw new PermanentError('INVALID_CONFIGURATION', describeConfigProblems(result.problems, result.unread));
  }
  const { config, unread } = result;
  const logger = createLogger({
    // The answer itself says what went wrong; whoever wants to read more asks for it.
    level: config.LOG_LEVEL === 'info' ? 'error' : config.LOG_LEVEL,
    role: 'rescue',
    secrets: secretsOf(config),
    destination: pino.destination({ dest: STDERR, sync: true }),
  });
  warnOfUnread(logger, unread);
  const connection = await connectDatabase({
    uri: config.MONGODB_URI,
    serverSelectionTimeoutMs: config.MONGODB_CONNECT_TIMEOUT_MS,
    logger,
  });
  const stellar = createStellarLayer({ settings: config, connection, logger });
  const close = async (): Promise<void> => {
    await stellar.close();
    await connection.close();
  };
  try {
    const deadLetterRecords = deadLetterModel(connection);
    const pipeline = createRandomnessPipeline({
      connection,
      settings: config,
      signer: stellar.oracle,
      submitter: stellar.submitter,
      reader: stellar.reader,
      feeEstimator: stellar.feeEstimator,
      witnesses: stellar.witnesses,
      latestLedger: (signal) => stellar.events.getLatestLedger(signal),
      deadLetters: new DeadLetterRepository(deadLetterRecords),
      requireApiKey: (_request, _response, next) => next(),
      logger,
    });
    if (pipeline === null) {
      throw new PermanentError(
        'PIPELINE_OFF',
        'neither RAFFLE_CONTRACT_ID nor RAFFLE_FACTORY_CONTRACT_ID is set: there is no randomness pipeline',
      );
    }
    await Promise.all([ensureIndexes(deadLetterRecords), stellar.ensureIndexes(), pipeline.ensureIndexes()]);
    const network = {
      network: config.STELLAR_NETWORK_PASSPHRASE,
      rpcUrls: config.SOROBAN_RPC_URLS.map((url) => new URL(url).origin),
      channelAccounts: stellar.sourceAccounts.filter((account) => account !== stellar.oracle.publicKey),
    };
    return { pipeline, network, close };
  } catch (error) {
    await close();
    throw error;
  }
}
