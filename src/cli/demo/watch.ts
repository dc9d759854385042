import type { Connection } from 'mongoose';
import { sleep } from '../../platform/clock';
import type { Say } from '../../platform/database/picked-server';
import { takeCensus, type Census } from './census';
import type { Crew } from './crew';
import type { DemoOptions } from './options';
import { readBuffer, type Buffer } from './spike';
import type { Stage } from './stage';
import type { Workload } from './workload';

export interface Watch {
  options: DemoOptions;
  stage: Stage;
  crew: Crew;
  workload: Workload;
  connection: Connection;
  say: Say;
  interrupted: AbortSignal;
  /** Seconds since the work was asked for. */
  seconds: () => number;
}

export interface Watched {
  census: Census;
  /** Events of the spike that reached their handler. */
  spikeHandled: number;
}

const PROGRESS_MS = 1_000;
/** The kill comes when so much of the valid work is done: late enough that lanes are full, early enough to matter. */
const KILL_AT_SHARE = 0.25;

/** Shows progress until everything has its end, or time is up, or Ctrl-C. */
export async function watch(watched: Watch): Promise<Watched> {
  const { options, stage, crew, workload, connection, say, interrupted, seconds } = watched;
  const valid = options.requests - options.reject;
  let toKill = options.kill;
  for (;;) {
    const [census, buffer] = await Promise.all([
      takeCensus(connection, stage.simnet, workload),
      readBuffer(crew.apiUrl),
    ]);
    const spikeHandled = handledOfSpike(buffer, options);
    say(
      `${seconds().toFixed(1).padStart(6)} s  ledger ${stage.simnet.latestLedger}  ${progressOf(census, valid)}` +
        (options.spike === 0 ? '' : `  spike ${spikeHandled}/${options.spike}, ${buffer.waiting} wait`),
    );
    const done = census.stuck === 0 && spikeHandled === options.spike;
    if (done || interrupted.aborted || seconds() > options.timeoutS) {
      if (toKill) say('          nobody was killed: the work was over before a quarter of it was seen done');
      return { census, spikeHandled };
    }
    if (toKill && census.minted + census.rafflesDelivered >= (valid + options.raffles) * KILL_AT_SHARE) {
      toKill = false;
      const { killed, started } = await crew.killOne();
      say(
        `          killed ${killed.name} (pid ${killed.pid}) with SIGKILL; ${started.name} takes its place.\n` +
          '          What it held is taken over when its leases run out.',
      );
    }
    const dead = crew.casualty();
    if (dead !== undefined)
      throw new Error(`the process ${dead.name} ended by itself; its log is ${dead.logFile}`);
    await sleep(PROGRESS_MS, interrupted);
  }
}

/** The work's own events are stored as well, at least one for each request and raffle; what is beyond them is the spike's. */
function handledOfSpike({ stored, waiting }: Buffer, { spike, requests, raffles }: DemoOptions): number {
  const storedOfSpike = Math.min(spike, Math.max(0, stored - requests - raffles));
  return Math.max(0, storedOfSpike - waiting);
}

function progressOf(census: Census, valid: number): string {
  const { requests, minted, rejected, raffles, rafflesDelivered, deadLettered, stuck } = census;
  const isOnLedger =
    minted === valid && rafflesDelivered === raffles && rejected === requests - valid && stuck > 0;
  return [
    ...(requests === 0 ? [] : [`minted ${minted}/${valid}`, `rejected ${rejected}/${requests - valid}`]),
    ...(raffles === 0 ? [] : [`raffles ${rafflesDelivered}/${raffles}`]),
    `dead-lettered ${deadLettered}`,
    // The ledger has it before the worker has heard: what is left is to note it down.
    `${isOnLedger ? 'to be confirmed' : 'open'} ${stuck}`,
  ].join('  ');
}
