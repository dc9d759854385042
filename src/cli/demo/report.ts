import type { Engine, Say } from '../../platform/database/picked-server';
import type { Census } from './census';

/** What `--json` prints. */
export interface Summary extends Census {
  /** Events of the spike, and how many of them reached their handler. */
  spike: number;
  spikeHandled: number;
  engine: Engine;
  seconds: number;
}

export interface Result {
  /** Everything came to its right end, once. */
  flawless: boolean;
  /** Of the requests, those to be minted. */
  valid: number;
  summary: Summary;
}

export function report({ flawless, valid, summary }: Result, say: Say, wasInterrupted: boolean): void {
  const { requests, minted, rejected, raffles, rafflesDelivered, deadLettered, stuck, duplicates } = summary;
  const { spike, spikeHandled, engine, seconds } = summary;
  say('');
  if (wasInterrupted) say('Interrupted: what was still open counts as stuck.');
  say(verdictOf({ flawless, valid, summary }));
  if (requests > 0) say(`  ${requests} requests: ${minted} minted, ${rejected} rejected`);
  if (raffles > 0) say(`  ${raffles} raffles: ${rafflesDelivered} delivered`);
  if (spike > 0) say(`  ${spike} events in a spike: ${spikeHandled} handled`);
  say(`  ${deadLettered} dead-lettered, ${stuck} stuck, ${duplicates} duplicates`);
  say(`  ${seconds} s on the ${engine} database`);
}

/** In one sentence, of what there was to do. */
export function verdictOf({ flawless, valid, summary: { requests, raffles, spike } }: Result): string {
  const claims = [
    ...(valid > 0 ? ['valid request was minted exactly once'] : []),
    ...(valid === 0 && requests > 0 ? ['request was rejected, as its media do not match its manifest'] : []),
    ...(raffles > 0 ? ['raffle delivered exactly once'] : []),
    ...(spike > 0 ? ['event of the spike handled'] : []),
  ];
  if (claims.length === 0) return 'There was nothing to do.';
  return `${flawless ? 'Every' : 'NOT every'} ${claims.join(' and every ')}.`;
}
