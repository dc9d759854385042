import { sleep } from '../../platform/clock';
import type { DemoOptions } from './options';
import { freePort } from './ports';
import { startProcess, type DemoProcess } from './processes';
import type { Stage } from './stage';

/** The processes of the house that the demo runs. */
export interface Crew {
  apiUrl: string;
  /** SIGKILLs one worker and starts another in its place. */
  killOne(): Promise<{ killed: DemoProcess; started: DemoProcess }>;
  /** The first process that ended without being asked to, if any. */
  casualty(): DemoProcess | undefined;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 30_000;
const START_POLL_MS = 100;

export async function startCrew({ processes, port }: DemoOptions, stage: Stage): Promise<Crew> {
  const { environment, logFolder } = stage;
  const apiPort = port === 0 ? await freePort() : port;
  const apiUrl = `http://127.0.0.1:${apiPort}`;
  const api = startProcess({
    name: 'api',
    environment: { ...environment, SOROLANE_ROLES: 'api,ingester', PORT: String(apiPort) },
    logFolder,
  });
  let workerCount = 0;
  const startWorker = (): DemoProcess =>
    startProcess({
      name: `worker-${++workerCount}`,
      environment: { ...environment, SOROLANE_ROLES: 'worker' },
      logFolder,
    });
  let workers = Array.from({ length: processes }, startWorker);

  const crew: Crew = {
    apiUrl,
    killOne: async () => {
      const [killed, ...others] = workers;
      if (killed === undefined) throw new Error('there is no worker to kill');
      workers = others;
      await killed.kill();
      const started = startWorker();
      workers.push(started);
      return { killed, started };
    },
    casualty: () => [api, ...workers].find((process) => process.hasExited()),
    stop: async () => {
      await Promise.all([api, ...workers].map((process) => process.stop()));
    },
  };
  try {
    await untilHealthy(apiUrl, crew);
  } catch (error) {
    await crew.stop();
    throw error;
  }
  return crew;
}

/** Until the API answers that a worker is alive. */
async function untilHealthy(apiUrl: string, crew: Crew): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline) {
    const dead = crew.casualty();
    if (dead !== undefined)
      throw new Error(`the process ${dead.name} ended while starting; its log is ${dead.logFile}`);
    const healthy = await fetch(`${apiUrl}/api/v1/worker/health`).then(
      (response) => response.ok,
      () => false,
    );
    if (healthy) return;
    await sleep(START_POLL_MS);
  }
  throw new Error(`no worker was alive within ${START_TIMEOUT_MS / 1000} s; the logs say why`);
}
