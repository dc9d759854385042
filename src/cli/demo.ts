import mongoose from 'mongoose';
import { sleep } from '../platform/clock';
import type { Engine, Say } from '../platform/database/picked-server';
import { askForWork } from './demo/ask';
import { isFlawless, takeCensus, type Census } from './demo/census';
import { startCrew, type Crew } from './demo/crew';
import { parseDemoOptions, type DemoOptions } from './demo/options';
import { setStage, type Stage } from './demo/stage';
import { makeWorkload, type Workload } from './demo/workload';

const PROGRESS_MS = 1_000;
/** The kill comes when so much of the valid work is done: late enough that lanes are full, early enough to matter. */
const KILL_AT_SHARE = 0.25;

async function main(): Promise<void> {
  const options = parseDemoOptions(process.argv);
  const say: Say = (line) => void (options.json ? process.stderr : process.stdout).write(`${line}\n`);
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());

  const stage = await setStage(options, say);
  let result: Result;
  try {
    const crew = await startCrew(options, stage);
    try {
      result = await run(options, stage, crew, say, interrupted.signal);
    } finally {
      say('Stopping.');
      await crew.stop();
    }
  } finally {
    await stage.close();
  }
  // Last of all, so that it is the last line whichever way the two streams are put together.
  if (options.json) process.stdout.write(`${JSON.stringify(result.summary)}\n`);
  process.exit(result.flawless ? 0 : 1);
}

interface Result {
  flawless: boolean;
  summary: Census & { engine: Engine; seconds: number };
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
  const secondsSoFar = (): number => Math.round((performance.now() - startedAt) / 100) / 10;
  try {
    const workload = makeWorkload(options);
    await askForWork(workload, stage.simnet);
    say(
      `Contracts asked for ${options.requests} verifications, ${options.reject} of them with media that do not match their manifest` +
        (options.raffles === 0 ? '.' : `, and for the randomness of ${options.raffles} raffles.`),
    );
    const census = await watch({
      options,
      stage,
      crew,
      workload,
      connection,
      say,
      interrupted,
      secondsSoFar,
    });
    const result: Result = {
      flawless: isFlawless(census, workload),
      summary: { ...census, engine: stage.server.engine, seconds: secondsSoFar() },
    };
    report(result, say);
    if (!options.once && !interrupted.aborted) await stayUp(crew, stage, say, interrupted);
    return result;
  } finally {
    await connection.close();
  }
}

interface Watch {
  options: DemoOptions;
  stage: Stage;
  crew: Crew;
  workload: Workload;
  connection: mongoose.Connection;
  say: Say;
  interrupted: AbortSignal;
  secondsSoFar: () => number;
}

function progressOf(census: Census, valid: number): string {
  const { requests, minted, rejected, raffles, rafflesDelivered, deadLettered, stuck } = census;
  return [
    ...(requests === 0 ? [] : [`minted ${minted}/${valid}`, `rejected ${rejected}/${requests - valid}`]),
    ...(raffles === 0 ? [] : [`raffles ${rafflesDelivered}/${raffles}`]),
    `dead-lettered ${deadLettered}`,
    `open ${stuck}`,
  ].join('  ');
}

/** Shows progress until every request has its end, or time is up, or Ctrl-C. */
async function watch({
  options,
  stage,
  crew,
  workload,
  connection,
  say,
  interrupted,
  secondsSoFar,
}: Watch): Promise<Census> {
  const valid = options.requests - options.reject;
  let toKill = options.kill;
  for (;;) {
    const census = await takeCensus(connection, stage.simnet, workload);
    say(
      `${secondsSoFar().toFixed(1).padStart(6)} s  ledger ${stage.simnet.latestLedger}  ${progressOf(census, valid)}`,
    );
    if (census.stuck === 0 || interrupted.aborted || secondsSoFar() > options.timeoutS) return census;
    if (toKill && census.minted + census.rafflesDelivered >= (valid + options.raffles) * KILL_AT_SHARE) {
      toKill = false;
      const { killed, started } = await crew.killOne();
      say(
        `          killed ${killed.name} (pid ${killed.pid}) with SIGKILL; ${started.name} takes its place`,
      );
    }
    const dead = crew.casualty();
    if (dead !== undefined)
      throw new Error(`the process ${dead.name} ended by itself; its log is ${dead.logFile}`);
    await sleep(PROGRESS_MS, interrupted);
  }
}

function report({ flawless, summary }: Result, say: Say): void {
  const { requests, minted, rejected, raffles, rafflesDelivered, deadLettered, stuck, duplicates } = summary;
  const { engine, seconds } = summary;
  say('');
  say(
    `${flawless ? 'Every' : 'NOT every'} valid request was minted exactly once${raffles === 0 ? '' : ' and every raffle delivered exactly once'}.`,
  );
  if (requests > 0) say(`  ${requests} requests: ${minted} minted, ${rejected} rejected`);
  if (raffles > 0) say(`  ${raffles} raffles: ${rafflesDelivered} delivered`);
  say(`  ${deadLettered} dead-lettered, ${stuck} stuck, ${duplicates} duplicates`);
  say(`  ${seconds} s on the ${engine} database`);
}

async function stayUp(crew: Crew, stage: Stage, say: Say, interrupted: AbortSignal): Promise<void> {
  say('');
  say('Still up. Try, in another terminal:');
  say(`  curl ${crew.apiUrl}/api/v1/worker/health`);
  say(`  curl ${stage.simnet.observerUrl}/certificates`);
  say('Ctrl-C stops everything.');
  while (!interrupted.aborted) await sleep(60_000, interrupted);
}

main().catch((error: unknown) => {
  process.stderr.write(`The demo failed: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
