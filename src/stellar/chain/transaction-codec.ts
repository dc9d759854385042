import {
  Account,
  Address,
  Asset,
  BASE_FEE,
  Keypair,
  Operation,
  SorobanDataBuilder,
  Transaction,
  TransactionBuilder,
  type FeeBumpTransaction,
  xdr,
} from '@stellar/stellar-sdk';
import type { ContractCall } from '../contract-value';
import type { Signer } from '../keys';
import { toScVal } from '../scval-codec';
import type { TransactionHash } from '../submission';

/** Stroops per operation that core demands at the least. */
export const MIN_INCLUSION_FEE_STROOPS = BigInt(BASE_FEE);

/** A fee bump's bid is counted over the inner operation and itself. */
const FEE_BUMP_OPERATIONS = 2n;

/** What one transaction of ours does. */
export type TransactionBody =
  | { kind: 'call'; call: ContractCall; footprint: string; auth: readonly string[] }
  /** Brings archived entries back, as its own transaction before the call that needs them. */
  | { kind: 'restore'; footprint: string }
  | { kind: 'create_accounts'; accounts: readonly string[]; balanceStroops: bigint }
  | { kind: 'pay'; accounts: readonly string[]; amountStroops: bigint };

export interface TransactionFrame {
  /** Whose sequence number is used; it pays. */
  source: Signer;
  /** The source's number before this transaction. */
  sequence: bigint;
  /** Who acts: the operation's source, whose authority contracts ask for. */
  actor: Signer;
  body: TransactionBody;
  /** Stroops per operation, beside the resource fee. */
  inclusionFee: bigint;
  /** Epoch seconds, by the network's clock. */
  maxTime: number;
  networkPassphrase: string;
}

export interface SignedEnvelope {
  hash: TransactionHash;
  envelopeXdr: string;
}

/** A transaction for simulation only: unsigned, with a sequence that no one will check. */
export function simulationEnvelope(call: ContractCall, actor: string, networkPassphrase: string): string {
  return new TransactionBuilder(new Account(actor, '0'), {
    fee: BASE_FEE,
    networkPassphrase,
    timebounds: { minTime: 0, maxTime: 0 },
  })
    .addOperation(invocation(call, actor, []))
    .build()
    .toXDR();
}

/** Builds and signs. Each of source and actor signs once. */
export async function signTransaction(frame: TransactionFrame): Promise<SignedEnvelope> {
  const builder = new TransactionBuilder(new Account(frame.source.publicKey, frame.sequence.toString()), {
    fee: frame.inclusionFee.toString(),
    networkPassphrase: frame.networkPassphrase,
    timebounds: { minTime: 0, maxTime: frame.maxTime },
  });
  for (const operation of operationsOf(frame.body, frame.actor.publicKey)) builder.addOperation(operation);
  // The builder adds the resource fee that the Soroban data names.
  if ('footprint' in frame.body) builder.setSorobanData(frame.body.footprint);
  const transaction = builder.build();
  const signers =
    frame.source.publicKey === frame.actor.publicKey ? [frame.actor] : [frame.source, frame.actor];
  return sign(transaction, signers);
}

function operationsOf(body: TransactionBody, actor: string): xdr.Operation[] {
  switch (body.kind) {
    case 'call':
      return [invocation(body.call, actor, body.auth)];
    case 'restore':
      return [Operation.restoreFootprint({ source: actor })];
    case 'create_accounts':
      return body.accounts.map((destination) =>
        Operation.createAccount({
          destination,
          startingBalance: inLumens(body.balanceStroops),
          source: actor,
        }),
      );
    case 'pay':
      return body.accounts.map((destination) =>
        Operation.payment({
          destination,
          asset: Asset.native(),
          amount: inLumens(body.amountStroops),
          source: actor,
        }),
      );
  }
}

const invocation = (call: ContractCall, actor: string, auth: readonly string[]): xdr.Operation =>
  Operation.invokeHostFunction({
    source: actor,
    func: xdr.HostFunction.hostFunctionTypeInvokeContract(
      new xdr.InvokeContractArgs({
        contractAddress: Address.fromString(call.contractId).toScAddress(),
        functionName: call.functionName,
        args: call.args.map(toScVal),
      }),
    ),
    auth: auth.map((entry) => xdr.SorobanAuthorizationEntry.fromXDR(entry, 'base64')),
  });

/**
 * Wraps a signed transaction so that it bids `inclusionFee` stroops per operation (itself counted as one), keeping its
 * sequence: whichever of the two lands, the effect is one.
 */
export async function signFeeBump(
  envelopeXdr: string,
  payer: Signer,
  inclusionFee: bigint,
  networkPassphrase: string,
): Promise<SignedEnvelope> {
  const inner = new Transaction(envelopeXdr, networkPassphrase);
  const bump = TransactionBuilder.buildFeeBumpTransaction(
    payer.publicKey,
    inclusionFee.toString(),
    inner,
    networkPassphrase,
  );
  return sign(bump, [payer]);
}

async function sign(
  transaction: Transaction | FeeBumpTransaction,
  signers: readonly Signer[],
): Promise<SignedEnvelope> {
  const hash = transaction.hash();
  for (const signer of signers) {
    const signature = Buffer.from(await signer.sign(hash));
    const hint = Keypair.fromPublicKey(signer.publicKey).signatureHint();
    transaction.signatures.push(new xdr.DecoratedSignature({ hint, signature }));
  }
  return { hash: hash.toString('hex') as TransactionHash, envelopeXdr: transaction.toXDR() };
}

/** Stroops per operation that a refused envelope should have bid, given the whole fee that core asks for. */
export function neededBid(neededFee: bigint, resourceFee: bigint, isFeeBump: boolean): bigint {
  const operations = isFeeBump ? FEE_BUMP_OPERATIONS : 1n;
  return (neededFee - resourceFee + operations - 1n) / operations;
}

/** Stroops that the body costs beside its inclusion fee. */
export const resourceFeeOf = (body: TransactionBody): bigint =>
  'footprint' in body ? new SorobanDataBuilder(body.footprint).build().resourceFee().toBigInt() : 0n;

export const accountLedgerKey = (address: string): string =>
  xdr.LedgerKey.account(
    new xdr.LedgerKeyAccount({ accountId: Keypair.fromPublicKey(address).xdrPublicKey() }),
  ).toXDR('base64');

export interface AccountEntry {
  /** G… */
  address: string;
  sequence: bigint;
  balanceStroops: bigint;
}

export function readAccountEntry(entryXdr: string): AccountEntry {
  const account = xdr.LedgerEntryData.fromXDR(entryXdr, 'base64').account();
  return {
    address: Address.account(account.accountId().ed25519()).toString(),
    sequence: account.seqNum().toBigInt(),
    balanceStroops: account.balance().toBigInt(),
  };
}

/** Identifies what a footprint touches, for the name of its restoration. */
export const footprintKeys = (sorobanDataXdr: string): string =>
  new SorobanDataBuilder(sorobanDataXdr).build().resources().footprint().toXDR('base64');

const STROOPS_PER_LUMEN = 10_000_000n;
const inLumens = (stroops: bigint): string =>
  `${stroops / STROOPS_PER_LUMEN}.${(stroops % STROOPS_PER_LUMEN).toString().padStart(7, '0')}`;
