import path from 'node:path';
import { z } from 'zod';
import type { Simnet } from '../../simnet';
import { SPIKE_HANDLER } from './spike-handler';

/** What the spike's process needs to know: the contract to follow, and the handler to hand its events to. */
export const spikeEnvironment = (simnet: Simnet): Record<string, string> => ({
  EVENT_CONTRACT_IDS: simnet.contracts.bridge,
  EVENT_HANDLER_MODULES: path.join(__dirname, `spike-handler${path.extname(__filename)}`),
});

/** The buffer as the API shows it. */
export interface Buffer {
  /** Events stored since the start, those of the work among them. */
  stored: number;
  /** Events of the spike that wait for their handler. */
  waiting: number;
}

const healthSchema = z.object({
  data: z.object({
    queue: z.object({ total: z.number(), pending: z.number(), processing: z.number() }),
    handlers: z.array(
      z.object({ handler: z.string(), ready: z.number(), waiting: z.number(), leased: z.number() }),
    ),
  }),
});

/** @throws when the API does not answer. */
export async function readBuffer(apiUrl: string): Promise<Buffer> {
  const response = await fetch(`${apiUrl}/api/v1/events/health`);
  const { queue, handlers } = healthSchema.parse(await response.json()).data;
  // Open events of other handlers are told by their deliveries; the rest is the spike's, routed or not yet.
  const ofOthers = handlers
    .filter(({ handler }) => handler !== SPIKE_HANDLER)
    .reduce((sum, { ready, waiting, leased }) => sum + ready + waiting + leased, 0);
  return { stored: queue.total, waiting: Math.max(0, queue.pending + queue.processing - ofOthers) };
}

const COMPACT_AUDIT_COMMIT = 0x0101;

/** So many events of another contract at once, beside the work. */
export async function emitSpike(simnet: Simnet, events: number): Promise<void> {
  const hash = new Uint8Array(32);
  await simnet.actions.emitCompactEvents(
    Array.from({ length: events }, (_, index) => ({
      flags: COMPACT_AUDIT_COMMIT,
      value: BigInt(index),
      hash,
    })),
  );
}
