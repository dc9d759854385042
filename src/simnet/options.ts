import { z } from 'zod';
import { faultPlanSchema } from './fault-rules';

export const defaultNetworkPassphrase = 'Sorolane Simulated Network ; 2026';

export const simnetOptionsSchema = z.strictObject({
  networkPassphrase: z.string().min(1).default(defaultNetworkPassphrase),
  /** First of a row of ports (endpoints, then the gateway); 0 takes free ones. */
  port: z.int().min(0).max(65_535).default(0),
  /** JSON-RPC listeners over the one ledger. */
  endpoints: z.int().min(1).max(16).default(1),
  /** Time between ledgers; 0 closes none by itself, and tests do it by hand. */
  ledgerMs: z.int().nonnegative().default(1000),
  faults: faultPlanSchema.prefault({}),
  /** Names the keys of the network's accounts: the same seed gives the same keys. */
  seed: z.int().default(1),
  metaVersion: z.union([z.literal(3), z.literal(4)]).default(4),
  /** As public nodes keep: about seven days of 5 s ledgers. */
  retentionLedgers: z.int().min(1).default(120_960),
  firstLedger: z.int().min(1).default(1000),
  /** Transactions that one ledger takes from the queue. */
  ledgerCapacity: z.int().min(1).default(1000),
  /** Event names of the raffle contract, which differ between its published versions. */
  raffleRequestedTopic: z.string().min(1).default('RandomnessRequested'),
  raffleReceivedTopic: z.string().min(1).default('RandomnessReceived'),
  /** Accounts with 10,000 XLM each, beside those of the network itself. */
  fundedAccounts: z.int().nonnegative().default(0),
});
export type SimnetOptions = z.input<typeof simnetOptionsSchema>;
export type SimnetSettings = z.infer<typeof simnetOptionsSchema>;
