import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { rpc } from '@stellar/stellar-sdk';
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

  it('refuses a fault plan that it cannot read, and says why', async () => {
    const child = simnet('--faults', 'rate=2');
    let complaint = '';
    child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    expect(code).toBe(1);
    expect(complaint).toContain('--faults');
    expect(complaint).toContain('rate');
  });
});
