import {
  mintRequest,
  newManifestHash,
  openStellarFixture,
  persist,
  type StellarFixture,
} from '../../support/stellar-fixture';

describe('submitting through faults at 30 % of all calls, on every endpoint', () => {
  let fixture: StellarFixture;
  beforeAll(async () => {
    fixture = await openStellarFixture({ endpoints: 2, ledgerMs: 50 });
  });
  afterAll(() => fixture.close());

  it.each([1, 2, 3])('lands each intent exactly once, within three tries (seed %i)', async (seed) => {
    const layers = await Promise.all(
      [1, 2].map(() => fixture.openLayer({ STELLAR_CHANNEL_COUNT: '4', STELLAR_RPC_TIMEOUT_MS: '250' })),
    );
    fixture.simnet.setFaults({ seed, rate: 0.3, holdMs: 400 });
    const hashes = Array.from({ length: 8 }, newManifestHash);

    const ended = await Promise.all(
      hashes.map((hash, index) => {
        const layer = layers[index % 2]!;
        return persist(layer, mintRequest(fixture.simnet.facts(), layer, hash), { maxTries: 3 });
      }),
    );

    fixture.simnet.setFaults({});
    const { observer } = fixture.simnet;
    const minted = observer.certificates().filter((one) => hashes.includes(one.manifestHash));
    expect(minted.map((one) => one.manifestHash).sort()).toEqual([...hashes].sort());
    expect(ended.map(({ outcome }) => outcome.kind)).toEqual(hashes.map(() => 'success'));
    expect(Object.keys(observer.stats().faultsByKind).length).toBeGreaterThan(3);
  });
});
