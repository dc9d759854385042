import { openRandomnessNetwork, type RandomnessNetwork, untilAll } from '../../support/randomness-network';
import { rescueCli } from '../../support/rescue-cli';

const operator = { operator: 'ops', reason: 'drill' };
let network: RandomnessNetwork;
// Generous: beside other suites on a busy machine, calls and ledgers take their time.
jest.setTimeout(60_000);

beforeAll(async () => {
  network = await openRandomnessNetwork({ ledgerMs: 60 });
});
afterAll(() => network.close());

it('rescues of all that a running pool works on: each raffle is delivered once, by one try', async () => {
  const RAFFLES = 10;
  const worker = await network.openWorker({ randomness: { QUEUE_MAX_CONCURRENCY: '4' } });
  const desk = await network.openWorker();
  const drawn = await network.simnet.actions.drawRaffles(
    Array.from({ length: RAFFLES }, (_, index) => ({ prizeLumens: index % 2 === 0 ? 100 : 700 })),
  );
  for (const { raffleId, requestId, ledger } of drawn) {
    await worker.pipeline.service.submit({
      requestId: String(requestId),
      raffleId,
      source: 'event',
      requestedAtLedger: ledger,
    });
  }
  const [results] = await Promise.all([
    Promise.all(
      // From the end of the queue, while the pool begins at its head: they meet.
      drawn
        .toReversed()
        .map(({ raffleId, requestId }) =>
          desk.pipeline.rescue.forceSubmit({ requestId: String(requestId), raffleId }, operator),
        ),
    ),
    worker.pool.start(),
  ]);
  const jobs = await untilAll(
    worker.pipeline,
    drawn.map(({ requestId }) => String(requestId)),
    'confirmed',
  );
  const delivered = network.simnet.observer.raffleDeliveries().map(({ raffleId }) => raffleId);
  expect(delivered.sort((a, b) => a! - b!)).toEqual(drawn.map(({ raffleId }) => raffleId));
  expect(jobs.map(({ attempts }) => attempts)).toEqual(Array.from({ length: RAFFLES }, () => 1));
  const refused = results.flatMap((result) => (result.kind === 'refused' ? [result.message] : []));
  // The others were the pool's, and it says so.
  for (const message of refused) expect(message).toMatch(/holds the job|already|is finalized/);
  expect(results.filter(({ kind }) => kind === 'done')).toHaveLength(RAFFLES - refused.length);
});

it('force-submit reaches a raffle that is a contract of its own, beside the configured one', async () => {
  const { actions, observer } = network.simnet;
  const [configured, another] = [actions.deployRaffleInstance(), actions.deployRaffleInstance()];
  const { requestId } = await actions.drawInstance(another);
  const cli = rescueCli(network, {
    RAFFLE_CONTRACT_ID: configured,
    RAFFLE_CONTRACT_INTERFACE: 'provide_randomness',
  });
  const id = `${another}:${requestId}`;
  const who = ['--operator', 'ops', '--reason', 'drill', '--json'];
  const preview = await cli.rescue('force-submit', '-', id, ...who);
  expect(JSON.parse(preview.stdout)).toMatchObject({
    plan: { requestId: id, raffleId: null, contractId: another, contractStatus: 'drawing', feeProblem: null },
  });
  let done = await cli.rescue('force-submit', '-', id, ...who, '--execute');
  // A try may fail as any worker's may (a node that is slow, an account in use); the operator then runs it again.
  let tries = 1;
  for (; done.exitCode === 3 && tries < 3; tries += 1)
    done = await cli.rescue('force-submit', '-', id, ...who, '--execute');
  expect([done.exitCode, JSON.parse(done.stdout)]).toMatchObject([0, { executed: true }]);
  expect(observer.raffleDeliveries().filter(({ contractId }) => contractId === another)).toHaveLength(1);
  const numbered = await cli.rescue('force-submit', '1', id, ...who);
  expect(JSON.parse(numbered.stdout)).toMatchObject({
    plan: {
      refusal: `the raffle of request ${id} is its contract, which numbers none: give "-" for the raffle, not 1`,
    },
  });
  expect(JSON.parse((await cli.rescue('logs', '--json')).stdout)).toMatchObject({
    logs: [
      { action: 'FORCE_SUBMIT', requestId: id, raffleId: null, result: 'done' },
      ...Array<object>(10 + tries - 1).fill({}),
    ],
  });
  // The configured one has asked for nothing: a slip leaves no job behind.
  const slip = await cli.rescue('force-submit', '-', String(requestId), ...who, '--execute');
  expect([slip.exitCode, slip.stdout]).toMatchObject([
    3,
    expect.stringContaining('has asked for no') as string,
  ]);
  expect(JSON.parse((await cli.rescue('list-failed', '--json')).stdout)).toMatchObject({ total: 0 });
});
