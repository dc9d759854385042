import { xdr } from '@stellar/stellar-sdk';
import type { LedgerRecord } from '../ledger-history';
import type { RpcMethod } from './rpc-context';
import { protocolVersion } from './rpc-context';

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

/** Header only: the transactions of a ledger are told by getTransaction and getTransactions. */
const closeMetaOf = (record: LedgerRecord, header: xdr.LedgerHeader): xdr.LedgerCloseMeta =>
  new xdr.LedgerCloseMeta(
    0,
    new xdr.LedgerCloseMetaV0({
      ledgerHeader: new xdr.LedgerHeaderHistoryEntry({
        hash: Buffer.from(record.hash, 'hex'),
        header,
        ext: new xdr.LedgerHeaderHistoryEntryExt(0),
      }),
      txSet: new xdr.TransactionSet({
        previousLedgerHash: Buffer.from(record.previousHash, 'hex'),
        txes: [],
      }),
      txProcessing: [],
      upgradesProcessing: [],
      scpInfo: [],
    }),
  );

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
