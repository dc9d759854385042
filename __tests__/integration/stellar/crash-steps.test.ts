import { ChannelRepository } from '../../../src/stellar/submissions/channel-repository';
import { SubmissionRepository } from '../../../src/stellar/submissions/submission-repository';
import {
  mintRequest,
  newManifestHash,
  openStellarFixture,
  persist,
  submit,
  type StellarFixture,
} from '../../support/stellar-fixture';

const steps = [
  [SubmissionRepository, 'open'],
  [SubmissionRepository, 'beginBuilding'],
  [ChannelRepository, 'lease'],
  [SubmissionRepository, 'commit'],
  [SubmissionRepository, 'openSend'],
  [SubmissionRepository, 'noteAccepted'],
  [SubmissionRepository, 'addBump'],
  [SubmissionRepository, 'noteSend'],
  [SubmissionRepository, 'settle'],
  [ChannelRepository, 'release'],
] as const;
const moments = steps.flatMap(([owner, method]) =>
  (['before', 'after'] as const).map((when) => ({ owner, method, when })),
);

type Write = (...input: unknown[]) => Promise<unknown>;

/**
 * A death at each write of the protocol: before it, and after it was carried out but before anyone heard of it, which is
 * a reply lost on its way as well. Whole processes are killed in crash.test.ts; here the dead do nothing more by having
 * every further write refused.
 */
describe('a process that dies at a write', () => {
  let fixture: StellarFixture;
  beforeAll(async () => {
    fixture = await openStellarFixture();
  });
  afterEach(() => {
    jest.restoreAllMocks();
    fixture.simnet.setFaults({});
  });
  afterAll(() => fixture.close());

  /** Returns a function that tells whether the moment has come. */
  function dieAt({ owner, method, when }: (typeof moments)[number]): () => boolean {
    let isDead = false;
    const patch = (type: typeof SubmissionRepository | typeof ChannelRepository, name: string): void => {
      const prototype = type.prototype as unknown as Record<string, Write>;
      const carryOut = prototype[name]!;
      jest.spyOn(prototype, name).mockImplementation(async function (this: unknown, ...input) {
        if (isDead) throw new Error('dead');
        const isMoment = type === owner && name === method;
        if (isMoment && when === 'before') isDead = true;
        const result = isDead ? undefined : await carryOut.apply(this, input);
        if (isMoment) isDead = true;
        if (isDead) throw new Error('died');
        return result;
      });
    };
    for (const [type, name] of steps) patch(type, name);
    for (const name of ['abandonBuilding', 'find', 'settleUnsent']) patch(SubmissionRepository, name);
    return () => isDead;
  }

  it.each(moments)('$when $method: the next claim lands it, once', async (moment) => {
    const manifestHash = newManifestHash();
    const victim = await fixture.openLayer({ STELLAR_FEE_PERCENTILE: 'p10' }, { buildLeaseMs: 100 });
    if (moment.method === 'addBump' || moment.method === 'noteSend') {
      fixture.simnet.setFaults({ rules: [{ fault: { kind: 'surge', minFeeRate: 50_000 } }] });
    }
    const hasDied = dieAt(moment);
    await submit(victim, mintRequest(fixture.simnet.facts(), victim, manifestHash)).catch(() => undefined);
    expect(hasDied()).toBe(true);
    jest.restoreAllMocks();
    fixture.simnet.setFaults({});

    const layer = await fixture.openLayer({}, { buildLeaseMs: 100 });
    const request = mintRequest(fixture.simnet.facts(), layer, manifestHash);
    const { outcome } = await persist(layer, request, { firstEpoch: 2 });

    expect(outcome.kind).toBe('success');
    const minted = fixture.simnet.observer.certificates().filter((one) => one.manifestHash === manifestHash);
    expect(minted).toHaveLength(1);
    await layer.recovery.sweep(new AbortController().signal);
    const [channel] = await new ChannelRepository(fixture.database.connection).list([layer.oracle.publicKey]);
    expect(channel).toMatchObject({ holder: null });
  });
});
