import { z } from 'zod';
import { PermanentError } from '../platform/errors';
import type { EventOutcome } from './event-handler';

const delayMs = z.number().nonnegative();
const failure = z.object({
  code: z.string(),
  message: z.string(),
  kind: z.enum(['transient', 'permanent', 'outcome_unknown', 'rejected']),
  retryable: z.boolean(),
  retryAfterMs: delayMs.optional(),
});
const outcomeSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('handled') }),
  z.object({ kind: z.literal('postponed'), delayMs, reason: z.string() }),
  z.object({ kind: z.literal('failed'), failure }),
]);

/**
 * What a handler says of one event, checked: handlers come from files that nobody has type-checked, and what the queue
 * file can't hold would keep every other result from being written as well.
 * @throws PermanentError HANDLER_OUTCOME
 */
export function checkedOutcome(outcome: unknown): EventOutcome {
  const parsed = outcomeSchema.safeParse(outcome);
  if (parsed.success) return parsed.data;
  throw new PermanentError(
    'HANDLER_OUTCOME',
    `the handler answered with no outcome that there is: ${z.prettifyError(parsed.error)}`,
  );
}
