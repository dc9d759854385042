import { deriveChannelSigners } from '../../../src/stellar/keys';
import {
  mintRequest,
  newManifestHash,
  openStellarFixture,
  submit,
  type StellarFixture,
} from '../../support/stellar-fixture';

describe('submitting a transaction', () => {
  let fixture: StellarFixture;
  beforeAll(async () => {
    fixture = await openStellarFixture();
  });
  afterAll(() => fixture.close());

  // A2: the confirmation is the chain's own word, with the ledger and the return value.
  it('lands one transaction and tells what it returned and cost', async () => {
    const layer = await fixture.openLayer();
    const manifestHash = newManifestHash();

    const outcome = await submit(layer, mintRequest(fixture.simnet.facts(), layer, manifestHash));

    const minted = fixture.simnet.observer.certificates().filter((one) => one.manifestHash === manifestHash);
    expect(minted).toHaveLength(1);
    expect(outcome).toMatchObject({
      kind: 'success',
      hash: minted[0]!.txHash,
      ledger: minted[0]!.ledger,
      returnValue: { type: 'u64', value: BigInt(minted[0]!.certificateId) },
    });
    const transaction = fixture.simnet.observer.transactions().find((one) => one.hash === minted[0]!.txHash);
    expect(outcome).toMatchObject({ feeChargedStroops: BigInt(transaction!.feeCharged) });
  });

  it('carries transactions of two processes side by side on channel accounts that it creates', async () => {
    const layers = await Promise.all([1, 2].map(() => fixture.openLayer({ STELLAR_CHANNEL_COUNT: '4' })));
    const hashes = Array.from({ length: 12 }, newManifestHash);

    const outcomes = await Promise.all(
      hashes.map((hash, index) => {
        const layer = layers[index % 2]!;
        return submit(layer, mintRequest(fixture.simnet.facts(), layer, hash));
      }),
    );

    expect(outcomes.map((outcome) => outcome.kind)).toEqual(hashes.map(() => 'success'));
    const { observer } = fixture.simnet;
    const minted = observer.certificates().filter((one) => hashes.includes(one.manifestHash));
    expect(minted.map((one) => one.manifestHash).sort()).toEqual([...hashes].sort());
    const carriers = new Set(
      observer
        .transactions()
        .filter((one) => minted.some((certificate) => certificate.txHash === one.hash))
        .map((one) => one.source),
    );
    expect(carriers.size).toBeGreaterThan(1);
    expect(observer.stats().badSequences).toBe(0);
  });

  it('pays once for channel accounts that it cannot afford, and says why', async () => {
    const layer = await fixture.openLayer({
      STELLAR_CHANNEL_COUNT: '7',
      STELLAR_CHANNEL_BALANCE_XLM: '900000000',
    });
    const before = fixture.simnet.observer.transactions().length;
    await expect(
      submit(layer, mintRequest(fixture.simnet.facts(), layer, newManifestHash())),
    ).rejects.toMatchObject({ code: 'MAINTENANCE_FAILED', kind: 'transient' });
    expect(fixture.simnet.observer.transactions().length - before).toBe(1);
  });

  it('tops up a channel account that has spent its funds on fees', async () => {
    const { networkPassphrase, oracleSecret } = fixture.simnet.facts();
    const [, , , , poor] = deriveChannelSigners(oracleSecret, networkPassphrase, 5);
    fixture.simnet.fund(poor!.publicKey, 3n);
    const layer = await fixture.openLayer({ STELLAR_CHANNEL_COUNT: '5', STELLAR_CHANNEL_BALANCE_XLM: '10' });

    const outcome = await submit(layer, mintRequest(fixture.simnet.facts(), layer, newManifestHash()));

    expect(outcome.kind).toBe('success');
    const paid = fixture.simnet.observer.transactions().filter((one) => one.operations.includes('payment'));
    expect(paid).toMatchObject([{ source: layer.oracle.publicKey, successful: true }]);
  });
});
