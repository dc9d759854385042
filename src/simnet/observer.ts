import { scValToNative, xdr } from '@stellar/stellar-sdk';
import { certificateMintedTopic } from './contracts/provenance';
import type { FaultEngine } from './faults';
import type { ContractIds } from './genesis';
import type { Ledger } from './ledger';
import type { LedgerRecord, StoredEvent } from './ledger-history';
import type { SimnetStats } from './stats';
import { contractDataKey } from './state';
import { fromVal, toVal } from './scval';
import { storageKey } from './contracts/storage-key';
import { endOfLedger } from './event-id';

export interface MintedCertificate {
  certificateId: string;
  owner: string;
  manifestHash: string;
  storageId: string;
  attestationHash: string;
  txHash: string;
  ledger: number;
}

export interface RaffleRequest {
  raffleId: number;
  requestId: string;
  ledger: number;
}

export interface RaffleDelivery {
  contractId: string;
  interfaceName: 'receive_randomness' | 'provide_randomness';
  /** Only where one contract holds many raffles. */
  raffleId?: number;
  requestId: string;
  /** 64 hex digits, or the decimal u64 of `provide_randomness`. */
  seed: string;
  txHash: string;
  ledger: number;
}

export interface ObservedTransaction {
  hash: string;
  innerHash?: string;
  source: string;
  feeSource: string;
  sequence: string;
  successful: boolean;
  /** Stroops. */
  feeCharged: string;
  ledger: number;
  operations: string[];
}

export interface ObservedStats {
  latestLedger: number;
  queued: number;
  accepted: number;
  duplicates: number;
  tryAgainLater: number;
  badSequences: number;
  dropped: number;
  rejectedByCode: Record<string, number>;
  /** Transactions from the queue that each ledger took; ledgers without any are left out. */
  includedPerLedger: Record<string, number>;
  callsByMethod: Record<string, number>;
  faultsByKind: Record<string, number>;
}

/** Event names as they stand in topics: comparing text spares decoding every event. */
const topicXdr = (name: string): string => toVal.symbol(name).toXDR('base64');
const mintedTopic = topicXdr(certificateMintedTopic);
const instanceReceivedTopic = topicXdr('randomness_received');

/** Reads the truth from the ledger itself: what is there, not what anybody says they sent. */
export class Observer {
  private readonly minted: MintedCertificate[] = [];
  private readonly delivered: RaffleDelivery[] = [];
  private readonly requested: RaffleRequest[] = [];
  private readonly raffleTopics: { requested: string; received: string };

  constructor(
    private readonly ledger: Ledger,
    private readonly contracts: ContractIds,
    private readonly counters: SimnetStats,
    private readonly faults: FaultEngine,
    raffleTopics: { requested: string; received: string },
  ) {
    this.raffleTopics = {
      requested: topicXdr(raffleTopics.requested),
      received: topicXdr(raffleTopics.received),
    };
    ledger.onClose((record, dropped) => {
      counters.dropped += dropped.length;
      this.note(record);
    });
  }

  /** Every certificate, in the order of minting. */
  certificates(): MintedCertificate[] {
    return [...this.minted];
  }

  /** Every raffle of the contract with many that asked for randomness, in chain order. */
  raffleRequests(): RaffleRequest[] {
    return [...this.requested];
  }

  /** Every randomness that a raffle took, in chain order; a raffle that took two would show twice. */
  raffleDeliveries(): RaffleDelivery[] {
    return [...this.delivered];
  }

  transactions(): ObservedTransaction[] {
    return this.ledger.history.transactions().map((applied) => ({
      hash: applied.hash,
      ...(applied.innerHash && { innerHash: applied.innerHash }),
      source: applied.source,
      feeSource: applied.feeSource,
      sequence: applied.sequence.toString(),
      successful: applied.successful,
      feeCharged: applied.feeCharged.toString(),
      ledger: applied.ledger,
      operations: applied.operations,
    }));
  }

  events(): readonly StoredEvent[] {
    return this.ledger.history.events();
  }

  stats(): ObservedStats {
    const { counters, ledger } = this;
    return {
      latestLedger: ledger.history.latest.sequence,
      queued: ledger.queue.size,
      accepted: counters.accepted,
      duplicates: counters.duplicates,
      tryAgainLater: counters.tryAgainLater,
      badSequences: counters.badSequences,
      dropped: counters.dropped,
      rejectedByCode: { ...counters.rejectedByCode },
      includedPerLedger: { ...counters.includedPerLedger },
      callsByMethod: { ...counters.callsByMethod },
      faultsByKind: this.faults.strikesByKind(),
    };
  }

  private note(record: LedgerRecord): void {
    if (record.fromQueue > 0) this.counters.includedPerLedger[record.sequence] = record.fromQueue;
    for (const event of eventsOf(this.ledger, record)) {
      const name = event.topics[0];
      if (event.contractId === this.contracts.provenance && name === mintedTopic) {
        this.minted.push(this.certificateOf(event));
      } else if (event.contractId === this.contracts.raffle && name === this.raffleTopics.requested) {
        this.requested.push(raffleRequest(event));
      } else if (event.contractId === this.contracts.raffle && name === this.raffleTopics.received) {
        this.delivered.push(raffleDelivery(event));
      } else if (name === instanceReceivedTopic) {
        this.delivered.push(instanceDelivery(event));
      }
    }
  }

  private certificateOf(event: StoredEvent): MintedCertificate {
    const certificateId = fromVal.u64(xdr.ScVal.fromXDR(event.topics[2] ?? '', 'base64'));
    const key = storageKey('Certificate', toVal.u64(certificateId));
    const record = this.ledger.state.read(
      contractDataKey(this.contracts.provenance, key, 'persistent'),
    )?.record;
    if (record?.kind !== 'contractData')
      throw new Error(`certificate ${certificateId.toString()} was minted but is not stored`);
    const stored = certificateFields(record.value);
    return {
      certificateId: certificateId.toString(),
      owner: stored.owner,
      manifestHash: stored.manifest_hash,
      storageId: stored.storage_id,
      attestationHash: stored.attestation_hash,
      txHash: event.txHash,
      ledger: event.ledger,
    };
  }
}

const certificateFields = fromVal.struct<{
  owner: string;
  storage_id: string;
  manifest_hash: string;
  attestation_hash: string;
}>({
  owner: fromVal.address,
  storage_id: fromVal.string,
  manifest_hash: fromVal.string,
  attestation_hash: fromVal.string,
});

const dataOf = (event: StoredEvent): Record<string, unknown> =>
  scValToNative(xdr.ScVal.fromXDR(event.value, 'base64')) as Record<string, unknown>;

const raffleRequest = (event: StoredEvent): RaffleRequest => {
  const data = dataOf(event) as { raffle_id: number; request_id: number };
  return { raffleId: data.raffle_id, requestId: String(data.request_id), ledger: event.ledger };
};

const raffleDelivery = (event: StoredEvent): RaffleDelivery => {
  const data = dataOf(event) as { raffle_id: number; request_id: number; seed: Buffer };
  return {
    contractId: event.contractId,
    interfaceName: 'receive_randomness',
    raffleId: data.raffle_id,
    requestId: String(data.request_id),
    seed: Buffer.from(data.seed).toString('hex'),
    txHash: event.txHash,
    ledger: event.ledger,
  };
};

const instanceDelivery = (event: StoredEvent): RaffleDelivery => {
  const data = dataOf(event) as { request_id: bigint; seed: bigint };
  return {
    contractId: event.contractId,
    interfaceName: 'provide_randomness',
    requestId: data.request_id.toString(),
    seed: data.seed.toString(),
    txHash: event.txHash,
    ledger: event.ledger,
  };
};

const eventsOf = (ledger: Ledger, { sequence }: LedgerRecord): Iterable<StoredEvent> =>
  ledger.history.eventsAfter(endOfLedger(sequence - 1), sequence + 1);
