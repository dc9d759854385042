import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { readConfig, settingGroups, type Config } from '../../src/platform/config';
import { validEnvironment } from '../support/environment';

interface Service {
  build?: string;
  image?: string;
  env_file?: string;
  environment?: Record<string, string>;
  volumes?: string[];
  stop_grace_period?: string;
  depends_on?: Record<string, { condition: string }>;
  deploy?: { replicas: number };
  healthcheck?: { test: string[] };
  ports?: string[];
}

const read = (name: string): string => readFileSync(path.join(__dirname, '../..', name), 'utf8');

describe('docker-compose.yml', () => {
  const { services, volumes } = parse(read('docker-compose.yml'), { merge: true }) as {
    services: Record<string, Service>;
    volumes: Record<string, unknown>;
  };
  const ours = Object.entries(services).filter(([, { build }]) => build !== undefined);
  const configOf = ({ environment = {} }: Service): Config => {
    const result = readConfig({ ...validEnvironment(), NODE_ENV: 'development', ...environment });
    if (result.kind === 'invalid') throw new Error(JSON.stringify(result.problems));
    return result.config;
  };
  const graceMs = ({ stop_grace_period: grace }: Service): number =>
    Number(/^(\d+)s$/.exec(grace ?? '')?.[1]) * 1000;

  test('runs a database, the API with the ingester, and two workers', () => {
    expect(ours.map(([name, { deploy }]) => [name, deploy?.replicas ?? 1])).toEqual([
      ['api', 1],
      ['worker', 2],
    ]);
    expect(services['mongo']?.image).toMatch(/^mongo:/);
    const roles = ours.flatMap(([, service]) => configOf(service).SOROLANE_ROLES);
    expect(roles.sort()).toEqual(['api', 'ingester', 'worker']);
    for (const [, { depends_on: needs, env_file: file }] of ours) {
      expect(needs?.['mongo']?.condition).toBe('service_healthy');
      expect(file).toBe('.env');
    }
  });

  test('sets variables that there are, to what they may be, and mounts volumes that there are', () => {
    const known = settingGroups.flatMap(({ settings }) => Object.keys(settings));
    for (const [, service] of ours) {
      for (const name of Object.keys(service.environment ?? {})) expect(known).toContain(name);
      expect(configOf(service).MONGODB_URI).toBe('mongodb://mongo:27017/sorolane');
    }
    const mounted = Object.values(services).flatMap(({ volumes: mounts = [] }) => mounts);
    expect(mounted.map((mount) => mount.split(':')[0])).toEqual(Object.keys(volumes));
  });

  test('probes each process on a port that it listens on, and publishes none that asks for no key', () => {
    for (const [, service] of ours) {
      const { OPERATIONS_PORT, PORT } = configOf(service);
      const probed = Number(/127\.0\.0\.1:(\d+)/.exec(service.healthcheck!.test.join(' '))?.[1]);
      expect([OPERATIONS_PORT, ...(service.ports === undefined ? [] : [PORT])]).toContain(probed);
      expect(service.ports?.join(' ') ?? '').not.toContain(String(OPERATIONS_PORT));
    }
  });

  test('gives each container the time that its process takes to end in order', () => {
    const [worker, api] = [services['worker']!, services['api']!];
    expect(graceMs(worker)).toBeGreaterThan(configOf(worker).WORKER_DRAIN_TIMEOUT_MS);
    expect(graceMs(api)).toBeGreaterThan(configOf(api).HTTP_SHUTDOWN_TIMEOUT_MS);
  });
});

describe('the Dockerfile', () => {
  const instructions = read('Dockerfile')
    .split('\n')
    .filter((line) => /^[A-Z]+ /.test(line));

  test('builds in one stage and runs what it built in another, as a user who is not root', () => {
    const lastStage = instructions.slice(instructions.findLastIndex((line) => line.startsWith('FROM ')));
    expect(instructions.filter((line) => line.startsWith('FROM '))).toHaveLength(2);
    expect(lastStage.filter((line) => line.startsWith('USER '))).toEqual(['USER node']);
    const { main } = JSON.parse(read('package.json')) as { main: string };
    expect(lastStage.at(-1)).toBe(`CMD ["node", "${main}"]`);
  });
});
