import type { FeeBumpTransaction, Keypair, Transaction } from '@stellar/stellar-sdk';
import {
  Account,
  Asset,
  Keypair as Keypairs,
  rpc,
  Operation,
  TransactionBuilder,
  xdr,
} from '@stellar/stellar-sdk';
import { rejectionCodes } from '../../../src/simnet/transaction-result';
import { Bench } from './support';

describe('admission to the transaction queue, by the rules of stellar-core', () => {
  let bench: Bench;

  beforeEach(async () => {
    bench = await Bench.start();
  });

  afterEach(() => bench.stop());

  const payment = () =>
    Operation.payment({ destination: bench.funded(1).publicKey(), asset: Asset.native(), amount: '1' });

  const signed = async (
    source: Keypair,
    options?: Parameters<Bench['build']>[2],
    signers: Keypair[] = [source],
  ): Promise<Transaction> => {
    const transaction = await bench.build(source, payment(), options);
    if (signers.length > 0) transaction.sign(...signers);
    return transaction;
  };

  const rejection = async (transaction: Transaction | FeeBumpTransaction) => {
    const sent = await bench.server.sendTransaction(transaction);
    expect(sent.status).toBe('ERROR');
    const result = sent.errorResult!;
    return { code: result.result().switch().name, feeCharged: result.feeCharged().toBigInt() };
  };

  const feeBump = (payer: Keypair, feePerOperation: string, inner: Transaction): FeeBumpTransaction => {
    const bump = TransactionBuilder.buildFeeBumpTransaction(
      payer,
      feePerOperation,
      inner,
      bench.net.networkPassphrase,
    );
    bump.sign(payer);
    return bump;
  };

  it('txBAD_AUTH: no signature, a stranger’s, and one for another network', async () => {
    expect((await rejection(await signed(bench.funded(0), {}, []))).code).toBe('txBadAuth');
    expect((await rejection(await signed(bench.funded(0), {}, [bench.funded(1)]))).code).toBe('txBadAuth');
    const account = await bench.server.getAccount(bench.funded(0).publicKey());
    const elsewhere = new TransactionBuilder(account, { fee: '100', networkPassphrase: 'Another Network' })
      .addOperation(payment())
      .setTimeout(60)
      .build();
    elsewhere.sign(bench.funded(0));
    expect((await rejection(elsewhere)).code).toBe('txBadAuth');
  });

  it('txBAD_AUTH_EXTRA: a signature that nobody asked for', async () => {
    const transaction = await signed(bench.funded(0), {}, [bench.funded(0), bench.funded(1)]);
    expect((await rejection(transaction)).code).toBe('txBadAuthExtra');
  });

  it('txTOO_EARLY and txTOO_LATE: by the close time of the ledger, not by any other clock', async () => {
    const now = bench.clock.seconds();
    const early = await signed(bench.funded(0), { minTime: now + 60, maxTime: now + 120 });
    const late = await signed(bench.funded(1), { maxTime: now + 10 });
    expect((await rejection(early)).code).toBe('txTooEarly');
    bench.clock.advanceSeconds(60);
    // No ledger has closed since: the network still lives at the old time.
    expect((await rejection(early)).code).toBe('txTooEarly');
    bench.net.closeLedger();
    expect((await rejection(late)).code).toBe('txTooLate');
    expect((await bench.server.sendTransaction(early)).status).toBe('PENDING');
  });

  it('txBAD_SEQ: too low and too high, and again once the transaction is in a ledger', async () => {
    const transaction = await signed(bench.funded(0));
    expect((await rejection(await signed(bench.funded(0), { sequenceOffset: 1n }))).code).toBe('txBadSeq');
    await bench.land(transaction);
    const stale = new TransactionBuilder(
      new Account(bench.funded(0).publicKey(), String(BigInt(transaction.sequence) - 1n)),
      {
        fee: '200',
        networkPassphrase: bench.net.networkPassphrase,
      },
    )
      .addOperation(payment())
      .setTimeout(60)
      .build();
    stale.sign(bench.funded(0));
    expect((await rejection(stale)).code).toBe('txBadSeq');
    // The same bytes are refused for a while without a verdict, and then by their sequence.
    expect((await bench.server.sendTransaction(transaction)).status).toBe('TRY_AGAIN_LATER');
    bench.net.closeLedgers(10);
    expect((await rejection(transaction)).code).toBe('txBadSeq');
    expect(bench.net.observer.stats().badSequences).toBe(3);
  });

  it('txINSUFFICIENT_FEE: names the fee that is needed', async () => {
    const transaction = await signed(bench.funded(0), { fee: '99' });
    expect(await rejection(transaction)).toEqual({ code: 'txInsufficientFee', feeCharged: 100n });
  });

  it('txSOROBAN_INVALID: a resource fee below what the declared resources cost', async () => {
    const prepared = await bench.prepareMint('manifest');
    const envelope = prepared.toEnvelope();
    const data = envelope.v1().tx().ext().sorobanData();
    data.resourceFee(xdr.Int64.fromString('1'));
    const cheap = TransactionBuilder.fromXDR(envelope, bench.net.networkPassphrase) as Transaction;
    cheap.signatures.length = 0;
    cheap.sign(bench.net.oracleKeypair);
    expect((await rejection(cheap)).code).toBe('txSorobanInvalid');
  });

  it('txNO_ACCOUNT, txINSUFFICIENT_BALANCE, txMISSING_OPERATION, txMALFORMED', async () => {
    const options = { fee: '100', networkPassphrase: bench.net.networkPassphrase };
    const stranger = Keypairs.random();
    const unknown = new TransactionBuilder(new Account(stranger.publicKey(), '0'), options)
      .addOperation(payment())
      .setTimeout(60)
      .build();
    unknown.sign(stranger);
    expect((await rejection(unknown)).code).toBe('txNoAccount');

    const rich = await signed(bench.funded(0), { fee: '4294967295' });
    const poor = Keypairs.random();
    bench.net.fund(poor.publicKey(), 2n);
    expect((await rejection(await signed(poor, { fee: '20000000' }))).code).toBe('txInsufficientBalance');
    expect((await bench.server.sendTransaction(rich)).status).toBe('PENDING');

    const empty = new TransactionBuilder(await bench.server.getAccount(bench.funded(1).publicKey()), options)
      .setTimeout(60)
      .build();
    empty.sign(bench.funded(1));
    expect((await rejection(empty)).code).toBe('txMissingOperation');

    const bare = await bench.build(bench.net.oracleKeypair, bench.mintOperation('manifest'));
    bare.sign(bench.net.oracleKeypair);
    expect((await rejection(bare)).code).toBe('txMalformed');
  });

  it('answers an undecodable envelope with a JSON-RPC error', async () => {
    const answer = await bench.call('sendTransaction', { transaction: 'AAAA' });
    expect(answer.error).toEqual({ code: -32602, message: 'invalid_xdr' });
  });

  it('can be told to answer each code', async () => {
    const transaction = await signed(bench.funded(0));
    for (const code of rejectionCodes) {
      bench.net.setFaults({ rules: [{ methods: ['sendTransaction'], fault: { kind: 'sendError', code } }] });
      expect((await rejection(transaction)).code).toBe(code);
    }
  });

  it('one transaction per source account; the same one again is a duplicate', async () => {
    const first = await signed(bench.funded(0));
    const second = await signed(bench.funded(0), { fee: '300' });
    expect((await bench.server.sendTransaction(first)).status).toBe('PENDING');
    expect((await bench.server.sendTransaction(first)).status).toBe('DUPLICATE');
    expect(await bench.server.sendTransaction(second)).toMatchObject({
      status: 'TRY_AGAIN_LATER',
      hash: second.hash().toString('hex'),
    });
    bench.net.closeLedger();
    expect((await bench.server.getTransaction(second.hash().toString('hex'))).status).toBe('NOT_FOUND');
  });

  it('drops what no ledger takes in four, and bans its hash for ten', async () => {
    bench.net.setFaults({ rules: [{ fault: { kind: 'surge', minFeeRate: 1000 } }] });
    const cheap = await signed(bench.funded(0), { maxTime: 0 });
    expect((await bench.server.sendTransaction(cheap)).status).toBe('PENDING');
    bench.net.closeLedgers(3);
    expect((await bench.server.sendTransaction(cheap)).status).toBe('DUPLICATE');
    bench.net.closeLedger();
    expect(bench.net.observer.stats()).toMatchObject({ queued: 0, dropped: 1 });
    expect((await bench.server.sendTransaction(cheap)).status).toBe('TRY_AGAIN_LATER');
    bench.net.closeLedgers(9);
    expect((await bench.server.sendTransaction(cheap)).status).toBe('TRY_AGAIN_LATER');
    bench.net.closeLedger();
    bench.net.setFaults({});
    expect((await bench.land(cheap)).status).toBe('SUCCESS');
  });

  it('once dropped, a fee bump at any sufficient fee lands the same inner transaction', async () => {
    bench.net.setFaults({ rules: [{ fault: { kind: 'surge', minFeeRate: 150 } }] });
    const inner = await signed(bench.funded(0));
    await bench.server.sendTransaction(inner);
    bench.net.closeLedgers(4);
    expect((await bench.land(feeBump(bench.funded(2), '200', inner))).status).toBe('SUCCESS');
  });

  it('replaces a queued transaction only by a fee bump that bids ten times as much', async () => {
    const inner = await signed(bench.funded(0), { fee: '200' });
    expect((await bench.server.sendTransaction(inner)).status).toBe('PENDING');
    expect(await rejection(feeBump(bench.funded(2), '1999', inner))).toEqual({
      code: 'txInsufficientFee',
      feeCharged: 4000n,
    });
    const bump = feeBump(bench.funded(2), '2000', inner);
    expect((await bench.server.sendTransaction(bump)).status).toBe('PENDING');
    expect((await bench.server.sendTransaction(inner)).status).toBe('DUPLICATE');
    bench.net.closeLedger();

    const byOuter = await bench.server.getTransaction(bump.hash().toString('hex'));
    const byInner = await bench.server.getTransaction(inner.hash().toString('hex'));
    expect(byOuter).toMatchObject({ status: 'SUCCESS', feeBump: true });
    expect(byInner).toMatchObject({ status: 'SUCCESS', feeBump: true });
    const { SUCCESS } = rpc.Api.GetTransactionStatus;
    if (byOuter.status !== SUCCESS || byInner.status !== SUCCESS) throw new Error('not landed');
    expect(byInner.envelopeXdr.toXDR('base64')).toBe(byOuter.envelopeXdr.toXDR('base64'));
    const pair = byOuter.resultXdr.result().innerResultPair();
    expect(pair.transactionHash().toString('hex')).toBe(inner.hash().toString('hex'));
    expect(bench.net.observer.transactions()).toHaveLength(1);
  });

  it('tells faults of a fee bump from faults of what it wraps', async () => {
    const inner = await signed(bench.funded(0));
    const unsigned = TransactionBuilder.buildFeeBumpTransaction(
      bench.funded(2),
      '200',
      inner,
      bench.net.networkPassphrase,
    );
    expect((await rejection(unsigned)).code).toBe('txBadAuth');
    await bench.land(inner);
    const sent = await bench.server.sendTransaction(feeBump(bench.funded(2), '200', inner));
    const result = sent.errorResult!.result();
    expect(result.switch().name).toBe('txFeeBumpInnerFailed');
    expect(result.innerResultPair().result().result().switch().name).toBe('txBadSeq');
    expect(bench.net.observer.stats().badSequences).toBe(1);
  });

  it('takes a channel account as source while another account authorises the operation', async () => {
    const channel = bench.funded(0);
    const oracle = bench.net.oracleKeypair;
    const operation = bench.mintOperation('manifest', oracle.publicKey());
    const unsigned = await bench.server.prepareTransaction(await bench.build(channel, operation));
    unsigned.sign(channel);
    expect((await rejection(unsigned)).code).toBe('txBadAuth');
    unsigned.sign(oracle);
    expect((await bench.land(unsigned)).status).toBe('SUCCESS');
  });

  it('takes transactions of many channels in one ledger', async () => {
    const channels = Array.from({ length: 12 }, () => Keypairs.random());
    for (const channel of channels) bench.net.fund(channel.publicKey());
    const hashes = await Promise.all(
      channels.map(async (channel, index) => {
        const operation = bench.mintOperation(`manifest-${index}`, bench.net.oracleKeypair.publicKey());
        const transaction = await bench.prepared(channel, operation, [channel, bench.net.oracleKeypair]);
        return (await bench.server.sendTransaction(transaction)).hash;
      }),
    );
    const { sequence } = bench.net.closeLedger();
    for (const hash of hashes) expect((await bench.server.getTransaction(hash)).status).toBe('SUCCESS');
    expect(bench.net.observer.certificates().map(({ certificateId }) => certificateId)).toEqual(
      channels.map((_, index) => String(index + 1)),
    );
    expect(bench.net.observer.stats().includedPerLedger[String(sequence)]).toBe(12);
  });
});
