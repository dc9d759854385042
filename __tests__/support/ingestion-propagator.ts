import { EventPropagator, type EventPropagatorOptions } from '../../src/ingestion/event-propagator';
import type { IngestionTuning } from '../../src/ingestion/ingestion-tuning';
import { CONTRACT_A, decodeSymbolsOnly } from './ingestion-chain';

const quick: Partial<IngestionTuning> = {
  pollIntervalMs: 10,
  processIntervalMs: 10,
  maxPollBackOffMs: 20,
  stopGraceMs: 2_000,
};

export type PropagatorParts = Omit<Partial<EventPropagatorOptions>, 'startLedger'> &
  Pick<EventPropagatorOptions, 'source'> & {
    /** Undefined, but named: begin at the newest ledger. */
    startLedger?: number | undefined;
  };

/** A propagator at test speed: polls each 10 ms, follows contract A unless told otherwise. */
export function makePropagator(given: PropagatorParts): EventPropagator {
  const { tuning, startLedger, ...parts } = { startLedger: 100, ...given } as PropagatorParts;
  return new EventPropagator({
    decode: decodeSymbolsOnly,
    contractIds: [CONTRACT_A],
    tuning: { ...quick, ...tuning },
    ...parts,
    ...(startLedger === undefined ? {} : { startLedger }),
  });
}
