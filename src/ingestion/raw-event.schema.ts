import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { RawEvent } from './event-source';
import type { MalformedEvent } from './event-store';

/** Only what storing and routing rest on. What is inside topics and value is looked at after storing. */
const rawEvent = z.looseObject({
  id: z.string().min(1),
  type: z.string(),
  ledger: z.int().positive(),
  ledgerClosedAt: z.string(),
  contractId: z.string().min(1),
  txHash: z.string(),
  topic: z.array(z.string()),
  value: z.string(),
});

const UNKNOWN_CONTRACT = 'unknown';

/** Separates what can be stored as an event from what can only be kept for inspection. */
export function sortEvents(offered: readonly unknown[]): { events: RawEvent[]; malformed: MalformedEvent[] } {
  const events: RawEvent[] = [];
  const malformed: MalformedEvent[] = [];
  for (const data of offered) {
    const parsed = rawEvent.safeParse(data);
    if (parsed.success) events.push(data as RawEvent);
    else malformed.push(describeMalformed(data, parsed.error));
  }
  return { events, malformed };
}

function describeMalformed(data: unknown, error: z.ZodError): MalformedEvent {
  const { id, contractId } = (data ?? {}) as { id?: unknown; contractId?: unknown };
  const digest = createHash('sha256')
    .update(JSON.stringify(data ?? null))
    .digest('hex');
  return {
    // The same rubbish seen twice is one row, like an event.
    id: typeof id === 'string' && id !== '' ? id : `malformed:${digest}`,
    contractId: typeof contractId === 'string' && contractId !== '' ? contractId : UNKNOWN_CONTRACT,
    data: data ?? null,
    reason: error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '),
  };
}
