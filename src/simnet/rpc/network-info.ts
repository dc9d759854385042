import { xdr } from '@stellar/stellar-sdk';
import { z } from 'zod';
import type { LedgerRecord } from '../ledger-history';
import type { RpcMethod } from './rpc-context';
import { invalidParams, protocolVersion, RpcFailure, rpcErrorCodes } from './rpc-context';

export const getHealth: RpcMethod = (_params, { view }) => ({
  status: 'healthy',
  ...view.window(),
  ledgerRetentionWindow: view.retentionLedgers,
});

export const getNetwork: RpcMethod = (_params, { networkPassphrase, friendbotUrl }) => ({
  friendbotUrl,
  passphrase: networkPassphrase,
  protocolVersion,
});

export const getVersionInfo: RpcMethod = () => ({
  version: '23.0.0-simnet',
  commitHash: '0000000000000000000000000000000000000000',
  buildTimestamp: '2026-01-01T00:00:00',
  captiveCoreVersion: 'simnet',
  protocolVersion,
});

const closeTimeOf = ({ closeTimeSeconds }: LedgerRecord): xdr.Uint64 =>
  xdr.Uint64.fromString(String(closeTimeSeconds));

const emptyHash = Buffer.alloc(32);

const headerOf = (record: LedgerRecord): xdr.LedgerHeader =>
  new xdr.LedgerHeader({
    ledgerVersion: protocolVersion,
    previousLedgerHash: Buffer.from(record.previousHash, 'hex'),
    scpValue: new xdr.StellarValue({
      txSetHash: emptyHash,
      closeTime: closeTimeOf(record),
      upgrades: [],
      ext: xdr.StellarValueExt.stellarValueBasic(),
    }),
    txSetResultHash: emptyHash,
    bucketListHash: emptyHash,
    ledgerSeq: record.sequence,
    totalCoins: xdr.Int64.fromString('1000000000000000000'),
    feePool: xdr.Int64.fromString('0'),
    inflationSeq: 0,
    idPool: xdr.Uint64.fromString('0'),
    baseFee: 100,
    baseReserve: 5_000_000,
    maxTxSetSize: 100,
    skipList: [emptyHash, emptyHash, emptyHash, emptyHash],
    ext: new xdr.LedgerHeaderExt(0),
  });

const historyEntryOf = (record: LedgerRecord, header: xdr.LedgerHeader): xdr.LedgerHeaderHistoryEntry =>
  new xdr.LedgerHeaderHistoryEntry({
    hash: Buffer.from(record.hash, 'hex'),
    header,
    ext: new xdr.LedgerHeaderHistoryEntryExt(0),
  });

/** Header only: the transactions of a ledger are told by getTransaction and getTransactions. */
const closeMetaOf = (record: LedgerRecord, header: xdr.LedgerHeader): xdr.LedgerCloseMeta =>
  new xdr.LedgerCloseMeta(
    0,
    new xdr.LedgerCloseMetaV0({
      ledgerHeader: historyEntryOf(record, header),
      txSet: new xdr.TransactionSet({
        previousLedgerHash: Buffer.from(record.previousHash, 'hex'),
        txes: [],
      }),
      txProcessing: [],
      upgradesProcessing: [],
      scpInfo: [],
    }),
  );

const maxLedgers = 200;
const ledgersSchema = z.object({
  startLedger: z.int().nonnegative(),
  pagination: z.object({ limit: z.int().min(1).max(maxLedgers).default(50) }).prefault({}),
});

/** Without cursors. */
export const getLedgers: RpcMethod = (params, { view, ledger }) => {
  const parsed = ledgersSchema.safeParse(params);
  if (!parsed.success) throw invalidParams(z.prettifyError(parsed.error));
  const { startLedger: start, pagination } = parsed.data;
  if (start < view.oldestLedger || start > view.latestLedger) {
    throw new RpcFailure(
      rpcErrorCodes.invalidRequest,
      `start ledger (${start}) must be between the oldest ledger: ${view.oldestLedger} and the latest ledger: ${view.latestLedger} for this rpc instance`,
    );
  }
  const end = Math.min(view.latestLedger, start + pagination.limit - 1);
  const ledgers = [];
  for (let sequence = start; sequence <= end; sequence += 1) {
    const record = ledger.history.at(sequence - view.ledgerOffset) ?? view.latest;
    const header = headerOf(record);
    ledgers.push({
      hash: record.hash,
      sequence,
      ledgerCloseTime: String(record.closeTimeSeconds),
      headerXdr: historyEntryOf(record, header).toXDR('base64'),
      metadataXdr: closeMetaOf(record, header).toXDR('base64'),
    });
  }
  return { ledgers, ...view.window(), cursor: String(end) };
};

export const getLatestLedger: RpcMethod = (_params, { view }) => {
  const header = headerOf(view.latest);
  return {
    id: view.latest.hash,
    protocolVersion,
    sequence: view.latestLedger,
    closeTime: String(view.latest.closeTimeSeconds),
    headerXdr: header.toXDR('base64'),
    metadataXdr: closeMetaOf(view.latest, header).toXDR('base64'),
  };
};
