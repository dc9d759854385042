import { isFlawless, takeCensus } from '../../../src/cli/demo/census';
import { makeWorkload } from '../../../src/cli/demo/workload';
import { startSimnet, type Simnet } from '../../../src/simnet';
import { openTestDatabase, type TestDatabase } from '../../support/database';

let simnet: Simnet;
let database: TestDatabase;
beforeAll(async () => {
  [simnet, database] = await Promise.all([startSimnet({ ledgerMs: 20 }), openTestDatabase()]);
});
afterAll(() => Promise.all([simnet.stop(), database.close()]));

it('counts the raffles that the ledger holds, not those that were planned', async () => {
  const workload = makeWorkload({ requests: 0, reject: 0, raffles: 3, seed: 1 });
  expect(await takeCensus(database.connection, simnet, workload)).toMatchObject({ raffles: 0, stuck: 3 });

  await simnet.actions.drawRaffles(workload.raffles.slice(0, 2));
  const census = await takeCensus(database.connection, simnet, workload);
  expect(census).toMatchObject({ raffles: 2, rafflesDelivered: 0, stuck: 3 });
  // All that asked may be served: one that never asked is missing all the same.
  const served = { ...census, rafflesDelivered: 2, stuck: 0 };
  expect(isFlawless(served, workload)).toBe(false);
  expect(isFlawless({ ...served, raffles: 3, rafflesDelivered: 3 }, workload)).toBe(true);
});
