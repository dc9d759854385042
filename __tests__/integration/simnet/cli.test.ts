import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { rpc } from '@stellar/stellar-sdk';
import { readConfig } from '../../../src/platform/config';
import type { SimnetFacts } from '../../../src/simnet';

describe('the simulated network as a process of its own', () => {
  const children: ChildProcess[] = [];

  const simnet = (...args: string[]) => {
    const child = spawn(process.execPath, ['--import', 'tsx', 'src/simnet/cli.ts', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push(child);
    return child;
  };

  afterAll(() => {
    for (const child of children) child.kill('SIGKILL');
  });

  it('prints its facts as one line, closes ledgers, tells the observer’s truth, and ends on SIGINT', async () => {
    const child = simnet('--port', '0', '--endpoints', '2', '--ledger-ms', '50', '--accounts', '2', '--json');
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
    const facts = JSON.parse(line) as SimnetFacts;
    expect(facts.rpcUrls).toHaveLength(2);
    expect(facts.fundedSecrets).toHaveLength(2);

    const server = new rpc.Server(facts.rpcUrls[1]!, { allowHttp: true });
    const start = (await server.getLatestLedger()).sequence;
    while ((await server.getLatestLedger()).sequence === start);
    expect((await server.getNetwork()).passphrase).toBe(facts.networkPassphrase);
    const stats = (await (await fetch(`${facts.observerUrl}/stats`)).json()) as { latestLedger: number };
    expect(stats.latestLedger).toBeGreaterThan(start);
    for (const path of ['facts', 'certificates', 'raffle-deliveries', 'transactions', 'events']) {
      expect((await fetch(`${facts.observerUrl}/${path}`)).status).toBe(200);
    }

    const exited = once(child, 'exit');
    child.kill('SIGINT');
    expect(await exited).toEqual([0, null]);
  });

  it('prints all that .env needs beside database and keys, for either raffle interface', async () => {
    const child = simnet('--port', '0');
    const pasted: Record<string, string> = {};
    const instances: Record<string, string> = {};
    for await (const line of createInterface(child.stdout)) {
      const [, mark, name, value] = /^(# )?([A-Z_]+)=(.+)$/.exec(line) ?? [];
      if (name !== undefined && value !== undefined) (mark === undefined ? pasted : instances)[name] = value;
      if (name === 'RAFFLE_FACTORY_CONTRACT_ID') break;
    }
    const own = { MONGODB_URI: 'mongodb://127.0.0.1:27017/sorolane', API_KEYS: 'key-for-tests-0123456789' };
    expect(readConfig({ ...pasted, ...own })).toMatchObject({
      kind: 'valid',
      config: { RAFFLE_CONTRACT_INTERFACE: 'receive_randomness' },
    });
    expect(readConfig({ ...pasted, ...own, ...instances })).toMatchObject({
      kind: 'valid',
      config: { RAFFLE_CONTRACT_INTERFACE: 'provide_randomness' },
    });
  });

  it('draws raffles of either interface when it is asked to', async () => {
    const child = simnet('--port', '0', '--ledger-ms', '50', '--json');
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
    const { controlUrl, observerUrl, contracts } = JSON.parse(line) as SimnetFacts;
    const draw = async (order: object): Promise<{ status: number; body: unknown }> => {
      const answer = await fetch(`${controlUrl}/raffles`, { method: 'POST', body: JSON.stringify(order) });
      return { status: answer.status, body: await answer.json() };
    };
    expect(await draw({ count: 2 })).toMatchObject({
      status: 200,
      body: {
        raffles: [
          { contractId: contracts.raffle, raffleId: 1, requestId: '1' },
          { contractId: contracts.raffle, raffleId: 2, requestId: '2' },
        ],
      },
    });
    const instances = (await draw({ count: 2, interface: 'provide_randomness' })) as {
      body: { raffles: { contractId: string; requestId: string }[] };
    };
    const ids = instances.body.raffles.map(({ contractId }) => contractId);
    expect(new Set(ids).size).toBe(2);
    const events = (await (await fetch(`${observerUrl}/events`)).json()) as { contractId: string }[];
    const told = events.filter(({ contractId }) => contractId === contracts.raffleFactory);
    expect(told).toHaveLength(2);
    for (const id of ids) expect(events.some(({ contractId }) => contractId === id)).toBe(true);
    expect(await draw({ count: 0, colour: 'red' })).toMatchObject({
      status: 400,
      body: { problems: [{ field: 'count' }, { field: 'colour' }] },
    });
  });

  const complaintOf = async (...args: string[]): Promise<{ code: number; complaint: string }> => {
    const child = simnet(...args);
    let complaint = '';
    child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    return { code, complaint };
  };

  it('says how to go on when a port is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const refused = await complaintOf('--port', String(port));
    taken.close();
    // The first is surely taken; another of the row may be as well, by whoever else runs on this machine.
    const [, named] = /^Port (\d+) is in use/.exec(refused.complaint) ?? [];
    expect(refused).toEqual({
      code: 1,
      complaint: `Port ${named} is in use by another program; give a different row of ports with --port.\n`,
    });
    expect(Number(named) - port).toBeLessThan(4);
    expect(Number(named)).toBeGreaterThanOrEqual(port);
  });

  it('says so when the row of ports is longer than there are ports', async () => {
    expect(await complaintOf('--port', '65535')).toEqual({
      code: 1,
      complaint: 'The row of ports from 65535 ends beyond 65535; begin it lower with --port.\n',
    });
  });

  it('refuses a fault plan that it cannot read, and says why', async () => {
    const { code, complaint } = await complaintOf('--faults', 'rate=2');
    expect(code).toBe(1);
    expect(complaint).toContain('--faults');
    expect(complaint).toContain('rate');
  });
});
