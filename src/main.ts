import { config as loadDotenv } from 'dotenv';
import { openHouse, type House } from './composition';
import { describeConfigProblems, readConfig, secretsOf, type Config } from './platform/config';
import { describeFailure } from './platform/errors';
import { createLogger, makeCensor, type Logger } from './platform/logger';
import { warnOfUnread } from './platform/settings/superseded';

/**
 * For what follows the drain: aborted jobs are handed back, the last heartbeat is written, connections close. What has not
 * ended by then is given up: its leases expire, and others take over.
 */
const FORCED_EXIT_MARGIN_MS = 15_000;

async function main(): Promise<void> {
  loadDotenv({ quiet: true });
  const result = readConfig(process.env);
  if (result.kind === 'invalid') fail(describeConfigProblems(result.problems, result.unread));

  const { config, unread } = result;
  const secrets = secretsOf(config);
  const logger = createLogger({ level: config.LOG_LEVEL, role: config.SOROLANE_ROLES.join('+'), secrets });
  exitOnFault(logger);
  warnOfUnread(logger, unread);
  const opening = openHouse(config, logger);
  // From the first moment: a signal that came while the house opened would otherwise end the process undrained.
  stopOnSignals(opening, config, logger);
  try {
    await opening;
  } catch (error) {
    const { code, message } = describeFailure(error);
    logger.debug({ err: error }, 'start failed');
    fail(makeCensor(secrets)(`Sorolane could not start (${code}): ${message}`));
  }
}

function fail(report: string): never {
  process.stderr.write(`${report}\n`);
  process.exit(1);
}

/** After a fault that nobody caught, this process's memory can't be trusted; what it holds is safe under its leases. */
function exitOnFault(logger: Logger): void {
  const exit = (error: unknown): void => {
    logger.fatal({ err: error }, 'unhandled fault: exiting, leases will expire');
    process.exit(1);
  };
  process.on('uncaughtException', exit);
  process.on('unhandledRejection', exit);
}

function stopOnSignals(opening: Promise<House>, config: Config, logger: Logger): void {
  let stopping = false;
  const stop = (signal: string): void => {
    if (stopping) {
      logger.warn({ signal }, 'second signal: exiting at once');
      process.exit(1);
    }
    stopping = true;
    logger.info({ signal }, 'stopping: draining what is held');
    const longestMs = Math.max(config.WORKER_DRAIN_TIMEOUT_MS, config.HTTP_SHUTDOWN_TIMEOUT_MS);
    setTimeout(() => {
      logger.error('the drain did not end in time: exiting, leases will expire');
      process.exit(1);
    }, longestMs + FORCED_EXIT_MARGIN_MS).unref();
    opening
      .then((house) => house.stop())
      .then(
        () => {
          logger.info('stopped');
          process.exit(0);
        },
        (error: unknown) => {
          logger.error({ err: error }, 'stop failed');
          process.exit(1);
        },
      );
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
}

void main();
