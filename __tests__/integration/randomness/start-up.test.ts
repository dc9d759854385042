import { Keypair } from '@stellar/stellar-sdk';
import { RejectedError, TransientError } from '../../../src/platform/errors';
import type { RandomnessPipelineDeps } from '../../../src/randomness/randomness.pipeline';
import { signerFromSecret, type Signer } from '../../../src/stellar/keys';
import { NO_SUCH_CONTRACT } from '../../../src/stellar/submission';
import { captureLogger, type CapturedLog } from '../../support/capture-logger';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { FakeRaffles } from '../../support/randomness-chain';
import {
  fakeContractId,
  openPipeline,
  oracleSecret,
  randomnessSettingsFor,
} from '../../support/randomness-fixture';
import { until } from '../../support/worker-fixture';

let database: TestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());

const open = (settings: Record<string, string> = {}, deps: Partial<RandomnessPipelineDeps> = {}) => {
  const chain = new FakeRaffles();
  return openPipeline(database.connection, {
    submitter: chain,
    reader: chain,
    feeEstimator: chain,
    latestLedger: () => Promise.resolve(1),
    settings: randomnessSettingsFor(settings),
    ...deps,
  });
};

const refusing = (error: Error): Pick<RandomnessPipelineDeps, 'reader'> => ({
  reader: { read: () => Promise.reject(error) },
});
/** A contract that has the function refuses what fits no raffle by a code of its own. */
const sound = refusing(
  new RejectedError('CONTRACT_ERROR', 'no such raffle', { details: { contractCode: 1 } }),
);

/** What a worker logs at its start, once it has logged `text`. */
async function logged(
  text: string,
  settings: Record<string, string>,
  deps: Partial<RandomnessPipelineDeps>,
): Promise<CapturedLog> {
  const log = captureLogger();
  const stop = (await open(settings, { logger: log.logger, ...deps })).startBackground();
  try {
    await until(text, () => log.text().includes(text));
  } finally {
    await stop();
  }
  return log;
}
const lineOf = (log: CapturedLog, text: string): Record<string, unknown> | undefined =>
  log.lines().find(({ msg }) => String(msg).includes(text));

describe('a worker that starts', () => {
  test.each([
    [
      'error',
      'RAFFLE_CONTRACT_INTERFACE does not fit RAFFLE_CONTRACT_ID',
      new RejectedError('CONTRACT_TRAP', 'it has no such function'),
      { problem: 'it has no such function' },
    ],
    [
      'error',
      'RAFFLE_CONTRACT_ID: there is no such contract on this network',
      new RejectedError(NO_SUCH_CONTRACT, 'nothing there'),
      { problem: 'nothing there' },
    ],
    [
      'warn',
      'the raffle contract could not be checked',
      new TransientError('RPC_UNAVAILABLE', 'no endpoint answers'),
      {},
    ],
  ])('tells, as %s: %s', async (level, text, answer, more) => {
    const facts = { level, contractId: fakeContractId, interfaceName: 'receive_randomness', ...more };
    expect(lineOf(await logged(text, {}, refusing(answer)), text)).toMatchObject(facts);
  });

  test.each([
    ['2020-01-01', true],
    [new Date().toISOString(), false],
  ])('warns of a key that is due for rotation: made at %s', async (createdAt, isDue) => {
    const log = await logged('has the function', { ORACLE_KEY_CREATED_AT: createdAt }, sound);
    const line = lineOf(log, 'the oracle key is due for rotation');
    if (isDue) expect(line).toMatchObject({ level: 'warn', maxAgeMs: 90 * 86_400_000 });
    else expect(line).toBeUndefined();
  });

  const own = signerFromSecret(oracleSecret);
  const other = signerFromSecret(Keypair.random().secret());
  const signing = (sign: Signer['sign']): Pick<RandomnessPipelineDeps, 'signer'> => ({
    signer: { publicKey: own.publicKey, sign },
  });
  test.each<[string, Signer['sign'], string, string]>([
    ['another key', (bytes) => other.sign(bytes), 'error', 'does not verify'],
    ['another curve', () => Promise.resolve(new Uint8Array(71)), 'error', 'does not verify'],
    [
      'no key at all',
      () => Promise.reject(new Error('the service is down')),
      'warn',
      'key could not be checked',
    ],
  ])('finds out that the oracle signs with %s', async (_, sign, level, text) => {
    const log = await logged(text, {}, { ...sound, ...signing(sign) });
    expect(lineOf(log, text)).toMatchObject({ level, oracleKey: own.publicKey });
  });

  it('says nothing of a key that signs as it should', async () => {
    const sign = jest.fn(own.sign);
    const log = await logged('has the function', {}, { ...sound, ...signing(sign) });
    expect(sign).toHaveBeenCalledTimes(1);
    expect(log.lines().filter(({ level }) => level !== 'info')).toEqual([]);
  });
});

describe('thresholds that leave no room for "normal"', () => {
  it('are told of, and the defaults of both are used', async () => {
    const log = captureLogger();
    const settings = { ORACLE_HIGH_VALUE_THRESHOLD_XLM: '5', ORACLE_MED_VALUE_THRESHOLD_XLM: '5' };
    const { service, rescue } = await open(settings, { logger: log.logger });
    expect(lineOf(log, 'the defaults of both are used')).toMatchObject({
      level: 'warn',
      configured: { highValueXlm: 5, mediumValueXlm: 5 },
      used: { highValueXlm: 10_000, mediumValueXlm: 1_000 },
    });
    const levels = [5, 999, 1_000, 10_000].map(async (prizeXlm, raffleId) => {
      const { requestId } = await service.submit({
        requestId: `worth-${prizeXlm}`,
        raffleId,
        prizeXlm,
        source: 'api',
      });
      return (await rescue.find(requestId))?.priorityLevel;
    });
    expect(await Promise.all(levels)).toEqual([10, 10, 5, 1]);
  });
});
