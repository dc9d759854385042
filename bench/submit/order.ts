import type { SimnetFacts } from '../../src/simnet';

/** What one worker process of the benchmark is to do. */
export interface Order {
  facts: SimnetFacts;
  uri: string;
  channels: number;
  lanes: number;
  pollIntervalMs: number;
}

/** What it has to say when it is told to stop. */
export interface Report {
  /** Hashes of the transactions that it saw confirmed. */
  confirmed: string[];
  /** From the send to the outcome, one for each. */
  confirmationMs: number[];
  outcomes: Record<string, number>;
  errors: Record<string, number>;
  rpcCalls: number;
  /** Processor time from the first send to the stop. */
  cpuMs: number;
}
