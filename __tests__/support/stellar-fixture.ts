import { randomBytes } from 'node:crypto';
import { createConnection, type Connection } from 'mongoose';
import { z } from 'zod';
import { SorolaneError } from '../../src/platform/errors';
import { silentLogger, type Logger } from '../../src/platform/logger';
import type { Metrics } from '../../src/platform/metrics';
import { stellarSettings, type StellarSettings } from '../../src/platform/settings/stellar.settings';
import { startSimnet, type Simnet, type SimnetOptions } from '../../src/simnet';
import { contractValue, type ContractCall } from '../../src/stellar/contract-value';
import { createStellarLayer, type StellarLayer } from '../../src/stellar/stellar-layer';
import type {
  ContractReader,
  Evidence,
  IntentId,
  SubmissionOutcome,
  SubmissionRequest,
} from '../../src/stellar/submission';
import { openTestDatabase, type TestDatabase } from './database';

const LEDGER_MS = 40;

export type SimnetFacts = ReturnType<Simnet['facts']>;

/** Settings for a simulated network with fast ledgers; `overrides` are texts of environment variables. */
export function stellarSettingsFor(
  facts: SimnetFacts,
  overrides: Record<string, string> = {},
): StellarSettings {
  return z.object(stellarSettings).parse({
    STELLAR_NETWORK_PASSPHRASE: facts.networkPassphrase,
    SOROBAN_RPC_URLS: facts.rpcUrls.join(','),
    STELLAR_ORACLE_SECRET_KEY: facts.oracleSecret,
    STELLAR_REGISTRY_CONTRACT_ID: facts.contracts.registry,
    STELLAR_ORACLE_CONTRACT_ID: facts.contracts.oracle,
    STELLAR_PROVENANCE_CONTRACT_ID: facts.contracts.provenance,
    STELLAR_TX_VALIDITY_MS: '10000',
    STELLAR_TX_CONFIRMATION_TIMEOUT_MS: '20000',
    STELLAR_TX_POLL_INTERVAL_MS: '40',
    STELLAR_RPC_TIMEOUT_MS: '1000',
    STELLAR_RPC_COOLDOWN_MS: '200',
    ...overrides,
  });
}

export interface StellarFixture {
  simnet: Simnet;
  database: TestDatabase;
  /** Another process's view of the same chain and database: a layer of its own on a connection of its own. */
  openLayer(overrides?: Record<string, string>, seams?: LayerSeams): Promise<StellarLayer>;
  /** Lets ledgers close while `work` runs, where the network closes none by itself. */
  withLedgers<T>(work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export interface LayerSeams {
  metrics?: Metrics;
  logger?: Logger;
  buildLeaseMs?: number;
}

export async function openStellarFixture(options: SimnetOptions = {}): Promise<StellarFixture> {
  const [simnet, database] = await Promise.all([
    startSimnet({ ledgerMs: LEDGER_MS, ...options }),
    openTestDatabase(),
  ]);
  const layers: StellarLayer[] = [];
  const connections: Connection[] = [];
  return {
    simnet,
    database,
    openLayer: async (overrides = {}, seams = {}) => {
      const connection = await createConnection(database.uri, {
        autoIndex: false,
        autoCreate: false,
      }).asPromise();
      const layer = createStellarLayer({
        settings: stellarSettingsFor(simnet.facts(), overrides),
        connection,
        logger: silentLogger(),
        ...seams,
      });
      connections.push(connection);
      layers.push(layer);
      await layer.ensureIndexes();
      return layer;
    },
    withLedgers: async (work) => {
      const timer = setInterval(() => simnet.closeLedger(), LEDGER_MS);
      try {
        return await work();
      } finally {
        clearInterval(timer);
      }
    },
    close: async () => {
      await Promise.all(layers.map((layer) => layer.close()));
      await Promise.all(connections.map((connection) => connection.close()));
      await Promise.all([database.close(), simnet.stop()]);
    },
  };
}

export const PROVENANCE_DUPLICATE = 3;

export const newManifestHash = (): string => randomBytes(32).toString('hex');

export const mintCall = (facts: SimnetFacts, manifestHash: string): ContractCall => ({
  contractId: facts.contracts.provenance,
  functionName: 'mint',
  args: [
    contractValue.address(facts.oraclePublicKey),
    contractValue.struct({
      storage_id: contractValue.string('bafkreigh2akiscaildc'),
      manifest_hash: contractValue.string(manifestHash),
      attestation_hash: contractValue.string(`attestation of ${manifestHash}`),
    }),
  ],
});

/** Whether the manifest has a certificate: the evidence that pipelines look for. */
export function mintEvidence(facts: SimnetFacts, reader: ContractReader, manifestHash: string) {
  return async (signal: AbortSignal): Promise<Evidence | null> => {
    const found = await reader.read(
      {
        contractId: facts.contracts.provenance,
        functionName: 'get_certificate_by_manifest',
        args: [contractValue.string(manifestHash)],
      },
      signal,
    );
    return found.type === 'void'
      ? null
      : { ours: true, returnValue: found, summary: `minted: ${manifestHash}` };
  };
}

export function mintRequest(
  facts: SimnetFacts,
  { reader }: Pick<StellarLayer, 'reader'>,
  manifestHash: string,
  overrides: Partial<SubmissionRequest> = {},
): SubmissionRequest {
  return {
    intent: `mint:${manifestHash}` as IntentId,
    epoch: 1,
    call: mintCall(facts, manifestHash),
    feeClass: 'standard',
    alreadyDoneCodes: [PROVENANCE_DUPLICATE],
    findEvidence: mintEvidence(facts, reader, manifestHash),
    ...overrides,
  };
}

export const neverAborted = (): AbortSignal => new AbortController().signal;

/** The whole protocol, as a job runs it. */
export async function submit(
  layer: Pick<StellarLayer, 'submitter'>,
  request: SubmissionRequest,
  timeoutMs = 15_000,
): Promise<SubmissionOutcome> {
  const signal = neverAborted();
  const prepared = await layer.submitter.prepare(request, signal);
  if (prepared.kind !== 'prepared') return prepared;
  const sent = await layer.submitter.send(request, signal);
  if (sent.kind !== 'sent') return sent;
  return layer.submitter.confirm(request, { timeoutMs, signal });
}

/** As jobs do it: each try a new claim under a later epoch, until the outcome is final. */
export async function persist(
  layer: Pick<StellarLayer, 'submitter'>,
  request: SubmissionRequest,
  { firstEpoch = 1, maxTries = 10, timeoutMs = 10_000 } = {},
): Promise<{ outcome: SubmissionOutcome; tries: number }> {
  for (let tries = 1; tries <= maxTries; tries += 1) {
    try {
      const outcome = await submit(layer, { ...request, epoch: firstEpoch + tries - 1 }, timeoutMs);
      if (outcome.kind !== 'unknown' && outcome.kind !== 'expired') return { outcome, tries };
    } catch (error) {
      if (!(error instanceof SorolaneError)) throw error;
    }
  }
  throw new Error(`${request.intent} was not decided in ${maxTries} tries`);
}
