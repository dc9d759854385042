import { Types } from 'mongoose';
import {
  newRandomnessJob,
  type StoredRandomnessJob,
} from '../../../src/randomness/jobs/randomness-job.model';
import { priorityLevel } from '../../../src/randomness/jobs/priority';
import { auditRowView, jobListItem } from '../../../src/randomness/http/views';

const at = (ms: number): Date => new Date(1_800_000_000_000 + ms);

function job(more: Partial<StoredRandomnessJob>): StoredRandomnessJob {
  const input = {
    requestId: 'req-1',
    contractId: 'C',
    contractRequestId: 'req-1',
    raffleId: 1,
    source: 'api' as const,
    prizeXlm: null,
    priorityLevel: priorityLevel.low,
    requestedAt: at(0),
    requestedAtLedger: null,
    oracleKey: 'G',
  };
  const queued = { _id: new Types.ObjectId(), key: 'req-1', enqueuedAt: at(0) };
  return { ...newRandomnessJob(input, at(0)), ...queued, ...more } as StoredRandomnessJob;
}

it('a job is never shown as changed before it was made, though two clocks tell the times', () => {
  expect(jobListItem(job({ updatedAt: at(-2) }))).toMatchObject({
    createdAt: at(0).toISOString(),
    updatedAt: at(0).toISOString(),
  });
  expect(jobListItem(job({ updatedAt: at(5) })).updatedAt).toBe(at(5).toISOString());
});

it('an error of the way is not shown once the randomness is on chain', () => {
  const lastError = 'the endpoint did not answer';
  expect(jobListItem(job({ currentState: 'confirmed', lastError })).lastError).toBeNull();
  expect(jobListItem(job({ currentState: 'retrying', lastError })).lastError).toBe(lastError);
});

it('only what names an operator is redacted', () => {
  const row = {
    seq: 1,
    at: at(0).toISOString(),
    event: 'abandoned' as const,
    eventKey: 'abandoned:1',
    requestId: 'req-1',
    raffleId: 1,
    data: { reason: 'cancelled' },
    previousHash: '0',
    hash: '1',
  };
  expect(auditRowView(row, false)).toBe(row);
  const rescue = { ...row, data: { operator: 'alice', result: 'done' } };
  expect(auditRowView(rescue, false)).toMatchObject({ redacted: true, hash: '1', data: { result: 'done' } });
  expect(auditRowView(rescue, true)).toBe(rescue);
});
