import { rm } from 'node:fs/promises';
import mongoose from 'mongoose';
import { sleep } from '../platform/clock';
import type { Say } from '../platform/database/picked-server';
import { askForWork } from './demo/ask';
import { isFlawless } from './demo/census';
import { startCrew, type Crew } from './demo/crew';
import { parseDemoOptions, type DemoOptions } from './demo/options';
import { portProblem } from './demo/ports';
import { report, type Result } from './demo/report';
import { emitSpike } from './demo/spike';
import { setStage, type Stage } from './demo/stage';
import { tryLines } from './demo/try-lines';
import { watch } from './demo/watch';
import { makeWorkload } from './demo/workload';

/** How often the demo looks after its processes while it stays up. */
const LOOK_AFTER_MS = 1_000;

async function main(): Promise<void> {
  const options = parseDemoOptions(process.argv);
  const say: Say = (line) => void (options.json ? process.stderr : process.stdout).write(`${line}\n`);
  const interrupted = interruptedBySignal();
  // Before anything is started: nothing would have to be stopped again.
  const problem = await portProblem(options.port);
  if (problem !== null) {
    process.stderr.write(`${problem}\n`);
    process.exit(1);
  }

  const stage = await setStage(options, say);
  let result: Result | undefined;
  try {
    const crew = await startCrew(options, stage);
    try {
      result = await run(options, stage, crew, say, interrupted);
    } finally {
      say('Stopping.');
      await crew.stop();
    }
  } finally {
    await stage.close();
    if (result?.flawless === true && !options.keepLogs) await rm(stage.logFolder, { recursive: true });
    else say(`The logs are kept in ${stage.logFolder}`);
  }
  // Last of all, so that it is the last line whichever way the two streams are put together.
  if (options.json) process.stdout.write(`${JSON.stringify(result.summary)}\n`);
  process.exit(result.flawless ? 0 : 1);
}

/** npm and its shell may pass on a Ctrl-C that the terminal sends to all of us anyway. */
const ECHO_MS = 1_000;

/** The first signal ends the demo in order; another one at once. */
function interruptedBySignal(): AbortSignal {
  const interrupted = new AbortController();
  let firstAtMs = 0;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (interrupted.signal.aborted && performance.now() - firstAtMs > ECHO_MS) process.exit(1);
      if (interrupted.signal.aborted) return;
      firstAtMs = performance.now();
      interrupted.abort();
    });
  }
  return interrupted.signal;
}

async function run(
  options: DemoOptions,
  stage: Stage,
  crew: Crew,
  say: Say,
  interrupted: AbortSignal,
): Promise<Result> {
  say(`API:      ${crew.apiUrl}, key ${stage.apiKey}`);
  say(`Workers:  ${options.processes} processes with ${options.lanes} lanes each`);
  const connection = await mongoose.createConnection(stage.databaseUri, { autoIndex: false }).asPromise();
  const startedAt = performance.now();
  const seconds = (): number => Math.round((performance.now() - startedAt) / 100) / 10;
  try {
    const workload = makeWorkload(options);
    await Promise.all([askForWork(workload, stage.simnet), emitSpike(stage.simnet, options.spike)]);
    say(describeWork(options));
    const { census, spikeHandled } = await watch({
      options,
      stage,
      crew,
      workload,
      connection,
      say,
      interrupted,
      seconds,
    });
    const { spike } = options;
    const result: Result = {
      flawless: isFlawless(census, workload) && spikeHandled === spike,
      valid: options.requests - options.reject,
      summary: { ...census, spike, spikeHandled, engine: stage.server.engine, seconds: seconds() },
    };
    report(result, say, interrupted.aborted);
    if (!options.once && !interrupted.aborted) await stayUp(options, crew, stage, say, interrupted);
    return result;
  } finally {
    await connection.close();
  }
}

function describeWork({ requests, reject, raffles }: DemoOptions): string {
  const asked = [
    ...(requests === 0
      ? []
      : [`${requests} verifications (${reject} of media that do not match their manifest)`]),
    ...(raffles === 0 ? [] : [`the randomness of ${raffles} raffles`]),
  ];
  return `Contracts asked for ${asked.length === 0 ? 'nothing' : asked.join(' and for ')}.`;
}

async function stayUp(
  options: DemoOptions,
  crew: Crew,
  stage: Stage,
  say: Say,
  interrupted: AbortSignal,
): Promise<void> {
  say('');
  say('Still up. Try, in another terminal:');
  for (const line of await tryLines(options, stage, crew.apiUrl)) say(`  ${line}`);
  say('Ctrl-C stops everything.');
  while (!interrupted.aborted) {
    const dead = crew.casualty();
    if (dead !== undefined)
      throw new Error(`the process ${dead.name} ended by itself; its log is ${dead.logFile}`);
    await sleep(LOOK_AFTER_MS, interrupted);
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`The demo failed: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
