import { randomUUID } from 'node:crypto';
import { describeFailure } from '../../platform/errors';
import type { Logger } from '../../platform/logger';
import type { AuditData, AuditRow } from '../audit/audit-chain';
import type { AuditTrail } from '../audit/audit-trail';
import type { JobAction } from './rescue-rules';

export type RescueAction = JobAction | 'force_submit';

/** Who did it and why; both are stored for good. */
export interface Operator {
  operator: string;
  reason: string;
}

export type RescueResult =
  | { kind: 'done'; message: string; jobId?: string; details: AuditData }
  /** It would be wrong to do it; of the job nothing was changed but by the tries that the message tells of. */
  | { kind: 'refused'; message: string; jobId?: string }
  | { kind: 'not_found'; message: string };

export interface RescueSubject {
  requestId: string;
  raffleId: number | null;
  jobId: string | null;
}

export interface RescueLogEntry extends RescueSubject, Operator {
  /** ISO 8601: when it began. */
  timestamp: string;
  action: Uppercase<RescueAction>;
  /** `unfinished`: it still runs, or its process died before it could say how it ended. */
  result: RescueResult['kind'] | 'error' | 'unfinished';
  details: AuditData;
}

export interface RescueLogQuery {
  raffleId?: number;
  limit: number;
}

/**
 * What operators did, in the audit trail: a row before the deed that says who is about to do what, and one behind it that
 * says what came of it. Whatever happens in between, nothing was done by nobody.
 */
export class RescueLog {
  constructor(private readonly deps: { audit: AuditTrail; logger: Logger }) {}

  async run(
    action: RescueAction,
    subject: RescueSubject,
    { operator, reason }: Operator,
    act: () => Promise<RescueResult>,
  ): Promise<RescueResult> {
    const { audit, logger } = this.deps;
    const rescueId = randomUUID();
    const { requestId, raffleId, jobId } = subject;
    await audit.append({
      event: 'rescue_intent',
      eventKey: intentKey(rescueId),
      requestId,
      raffleId,
      data: { rescueId, action, jobId, operator, reason },
    });
    const close = (result: string, outcome: AuditData): Promise<void> =>
      audit
        .append({
          event: `rescue_${action}`,
          eventKey: resultKey(rescueId),
          requestId,
          raffleId,
          data: { ...outcome, rescueId, operator, reason, result },
        })
        // The deed is done or it isn't; hiding which, because this row could not be written, would help nobody.
        .catch((error: unknown) =>
          logger.error({ err: error, rescueId, result }, 'rescue result not recorded'),
        );
    try {
      const result = await act();
      const known = 'jobId' in result ? (result.jobId ?? jobId) : jobId;
      const outcome = result.kind === 'done' ? result.details : { message: result.message };
      await close(result.kind, { ...outcome, jobId: known });
      logger.info({ action, requestId, operator, reason, result: result.kind }, `rescue: ${result.message}`);
      return result;
    } catch (error) {
      await close('error', { message: describeFailure(error).message, jobId });
      throw error;
    }
  }

  /** Newest first. */
  async page(query: RescueLogQuery): Promise<{ entries: RescueLogEntry[]; isLast: boolean }> {
    const { audit } = this.deps;
    const { rows, next } = await audit.page({ ...query, events: ['rescue_intent'] });
    const results = await audit.findByKeys(rows.map(({ data }) => resultKey(String(data['rescueId']))));
    const byRescue = new Map(results.map((row) => [row.data['rescueId'], row]));
    return {
      entries: rows.map((intent) => entryOf(intent, byRescue.get(intent.data['rescueId'] ?? null))),
      isLast: next === null,
    };
  }
}

const intentKey = (rescueId: string): string => `rescue:${rescueId}:intent`;
const resultKey = (rescueId: string): string => `rescue:${rescueId}:result`;

// Both rows were written above; a trail that says otherwise was tampered with, which verify-audit tells.
function entryOf({ at, requestId, raffleId, data }: AuditRow, outcome: AuditRow | undefined): RescueLogEntry {
  const { action, operator, reason, jobId: plannedJobId } = data;
  const { result = 'unfinished', jobId = plannedJobId, ...rest } = outcome?.data ?? {};
  const ownFields = ['rescueId', 'operator', 'reason'];
  return {
    timestamp: at,
    action: String(action).toUpperCase() as RescueLogEntry['action'],
    requestId,
    raffleId,
    jobId: typeof jobId === 'string' ? jobId : null,
    operator: String(operator),
    reason: String(reason),
    result: String(result) as RescueLogEntry['result'],
    details: Object.fromEntries(Object.entries(rest).filter(([name]) => !ownFields.includes(name))),
  };
}
