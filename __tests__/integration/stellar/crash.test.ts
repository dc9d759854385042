import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { FaultRuleInput } from '../../../src/simnet';
import { ChannelRepository } from '../../../src/stellar/submissions/channel-repository';
import { SubmissionRepository } from '../../../src/stellar/submissions/submission-repository';
import type { IntentId } from '../../../src/stellar/submission';
import type { CrashOrder } from '../../support/stellar-crash-child';
import {
  mintRequest,
  newManifestHash,
  openStellarFixture,
  persist,
  type StellarFixture,
} from '../../support/stellar-fixture';

const CHILD = path.join(__dirname, '../../support/stellar-crash-child.ts');
/** The child is killed while it waits for an answer that never comes. */
const holdMs = 60_000;
const overrides = { STELLAR_RPC_TIMEOUT_MS: '60000' };

interface Moment {
  name: string;
  lastStep: CrashOrder['lastStep'];
  faults?: FaultRuleInput[];
  /** True when the child stands where it is to be killed. */
  hasCome(seen: Seen): boolean;
}

interface Seen {
  steps: string[];
  submission: Awaited<ReturnType<SubmissionRepository['find']>>;
  held: boolean;
  queuedOrLanded: number;
}

const moments: Moment[] = [
  {
    name: 'between leasing the source account and storing what it signs',
    lastStep: 'prepare',
    faults: [{ methods: ['getLedgerEntries'], fault: { kind: 'timeoutBefore', holdMs } }],
    hasCome: ({ held, submission }) => held && submission?.building !== null,
  },
  {
    name: 'between storing and sending',
    lastStep: 'prepare',
    hasCome: ({ steps, submission }) => steps.includes('prepare') && submission?.attempt?.sends === 0,
  },
  {
    name: 'while sending, before a node took it',
    lastStep: 'send',
    faults: [{ methods: ['sendTransaction'], fault: { kind: 'timeoutBefore', holdMs } }],
    hasCome: ({ submission, queuedOrLanded }) => submission?.attempt?.sends === 1 && queuedOrLanded === 0,
  },
  {
    name: 'while sending, after a node took it',
    lastStep: 'send',
    faults: [{ methods: ['sendTransaction'], fault: { kind: 'timeoutAfter', holdMs } }],
    hasCome: ({ queuedOrLanded }) => queuedOrLanded === 1,
  },
  {
    name: 'between sending and looking',
    lastStep: 'send',
    hasCome: ({ steps }) => steps.includes('send'),
  },
  {
    name: 'while looking',
    lastStep: 'confirm',
    faults: [{ methods: ['getTransaction'], fault: { kind: 'timeoutAfter', holdMs } }],
    hasCome: ({ steps }) => steps.includes('send'),
  },
];

describe('a process that is killed in the midst of a submission', () => {
  let fixture: StellarFixture;
  let submissions: SubmissionRepository;
  let channels: ChannelRepository;
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    // Ledgers close by hand until the kill, so that each moment is the moment it is meant to be.
    fixture = await openStellarFixture({ ledgerMs: 0 });
    submissions = new SubmissionRepository(fixture.database.connection);
    channels = new ChannelRepository(fixture.database.connection);
    for (const _moment of moments) spawnChild();
  });
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    await fixture.close();
  });

  function spawnChild(): void {
    children.push(fork(CHILD, { execArgv: ['--import', 'tsx'], stdio: 'ignore' }));
  }

  /** Runs the child to its moment and kills it there. */
  async function killAt(moment: Moment, manifestHash: string): Promise<void> {
    const { simnet, database } = fixture;
    const child = children.shift()!;
    const steps: string[] = [];
    child.on('message', (step: string) => steps.push(step));
    const intent = `mint:${manifestHash}` as IntentId;
    const before = simnet.observer.transactions().length;
    simnet.setFaults({ rules: moment.faults ?? [] });
    const order: CrashOrder = {
      facts: simnet.facts(),
      uri: database.uri,
      overrides,
      manifestHash,
      lastStep: moment.lastStep,
    };
    child.send(order);
    const account = simnet.facts().oraclePublicKey;
    for (;;) {
      const [channel] = await channels.list([account]);
      const submission = await submissions.find(intent);
      const queuedOrLanded = simnet.observer.stats().queued + simnet.observer.transactions().length - before;
      if (moment.hasCome({ steps, submission, held: channel?.holder?.intent === intent, queuedOrLanded }))
        break;
      if (child.exitCode !== null) throw new Error('the child ended before its moment');
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    child.kill('SIGKILL');
    if (child.signalCode === null && child.exitCode === null) await once(child, 'exit');
    simnet.setFaults({});
  }

  const mintedOf = (manifestHash: string): number =>
    fixture.simnet.observer.certificates().filter((one) => one.manifestHash === manifestHash).length;

  it.each(moments)('$name: the next claim lands it, once', async (moment) => {
    const manifestHash = newManifestHash();
    await killAt(moment, manifestHash);

    const layer = await fixture.openLayer();
    const { outcome } = await fixture.withLedgers(() =>
      persist(layer, mintRequest(fixture.simnet.facts(), layer, manifestHash), { firstEpoch: 2 }),
    );

    expect(outcome.kind).toBe('success');
    expect(mintedOf(manifestHash)).toBe(1);
    const [channel] = await channels.list([layer.oracle.publicKey]);
    expect(channel).toMatchObject({ holder: null });
  });
});
