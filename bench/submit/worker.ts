import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { createConnection } from 'mongoose';
import { z } from 'zod';
import { describeFailure } from '../../src/platform/errors';
import { silentLogger } from '../../src/platform/logger';
import { stellarSettings } from '../../src/platform/settings/stellar.settings';
import { contractValue } from '../../src/stellar/contract-value';
import { createStellarLayer, type StellarLayer } from '../../src/stellar/stellar-layer';
import type { IntentId, SubmissionRequest } from '../../src/stellar/submission';
import type { Order, Report } from './order';

const CONFIRM_MS = 60_000;
const report: Report = { confirmed: [], confirmationMs: [], outcomes: {}, errors: {}, rpcCalls: 0, cpuMs: 0 };
const stop = new AbortController();
// All lanes listen to the one signal.
setMaxListeners(0, stop.signal);
const isStopping = (): boolean => stop.signal.aborted;

process.on('message', (message: Order | 'stop') => {
  if (message === 'stop') stop.abort();
  else void run(message);
});
process.send?.('ready');

async function run({ facts, uri, channels, lanes, pollIntervalMs }: Order): Promise<void> {
  const connection = await createConnection(uri, { autoIndex: false, autoCreate: false }).asPromise();
  const layer = createStellarLayer({
    settings: z.object(stellarSettings).parse({
      STELLAR_NETWORK_PASSPHRASE: facts.networkPassphrase,
      SOROBAN_RPC_URLS: facts.rpcUrls.join(','),
      STELLAR_ORACLE_SECRET_KEY: facts.oracleSecret,
      STELLAR_REGISTRY_CONTRACT_ID: facts.contracts.registry,
      STELLAR_ORACLE_CONTRACT_ID: facts.contracts.oracle,
      STELLAR_PROVENANCE_CONTRACT_ID: facts.contracts.provenance,
      STELLAR_CHANNEL_COUNT: String(channels),
      STELLAR_TX_POLL_INTERVAL_MS: String(pollIntervalMs),
    }),
    connection,
    logger: silentLogger(),
    metrics: {
      count: (name, _labels, by = 1) => {
        if (name === 'stellar_rpc_calls_total') report.rpcCalls += by;
      },
      observe: () => undefined,
    },
  });
  await layer.ensureIndexes();
  const cpu = process.cpuUsage();
  await Promise.all(Array.from({ length: lanes }, () => submitUntilStopped(layer, facts)));
  const { user, system } = process.cpuUsage(cpu);
  report.cpuMs = (user + system) / 1000;
  await layer.close();
  await connection.close();
  process.send?.(report, () => process.exit(0));
}

async function submitUntilStopped(layer: StellarLayer, facts: Order['facts']): Promise<void> {
  while (!isStopping()) {
    try {
      const outcome = await submitOne(layer, mintOf(layer, facts));
      report.outcomes[outcome] = (report.outcomes[outcome] ?? 0) + 1;
    } catch (error) {
      if (isStopping()) return;
      const { code } = describeFailure(error);
      report.errors[code] = (report.errors[code] ?? 0) + 1;
    }
  }
}

/** Once sent, a transaction is followed to its end, stop or not: what lands is counted. */
async function submitOne({ submitter }: StellarLayer, request: SubmissionRequest): Promise<string> {
  const prepared = await submitter.prepare(request, stop.signal);
  if (prepared.kind !== 'prepared') return prepared.kind;
  const { signal } = new AbortController();
  const startedMs = performance.now();
  const sent = await submitter.send(request, signal);
  const outcome =
    sent.kind === 'sent' ? await submitter.confirm(request, { timeoutMs: CONFIRM_MS, signal }) : sent;
  if (outcome.kind === 'success') {
    report.confirmed.push(outcome.hash);
    report.confirmationMs.push(performance.now() - startedMs);
  }
  return outcome.kind;
}

function mintOf({ reader }: StellarLayer, facts: Order['facts']): SubmissionRequest {
  const manifestHash = randomBytes(32).toString('hex');
  const contractId = facts.contracts.provenance;
  return {
    intent: `mint:${manifestHash}` as IntentId,
    epoch: 1,
    feeClass: 'standard',
    alreadyDoneCodes: [],
    call: {
      contractId,
      functionName: 'mint',
      args: [
        contractValue.address(facts.oraclePublicKey),
        contractValue.struct({
          storage_id: contractValue.string('benchmark'),
          manifest_hash: contractValue.string(manifestHash),
          attestation_hash: contractValue.string(manifestHash),
        }),
      ],
    },
    findEvidence: async (signal) => {
      const args = [contractValue.string(manifestHash)];
      const found = await reader.read(
        { contractId, functionName: 'get_certificate_by_manifest', args },
        signal,
      );
      return found.type === 'void' ? null : { ours: true, summary: manifestHash };
    },
  };
}
