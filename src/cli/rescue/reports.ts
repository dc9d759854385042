import type { DrawReport, DrawStatus } from '../../randomness/rescue/stuck-report';
import type { RescueLogEntry, RescueLogQuery } from '../../randomness/rescue/rescue-log';
import { jobListItem } from '../../randomness/http/views';
import { type Answer, exitCodes, table } from '../answer';
import type { OpenRescue } from './open-rescue';
import { ago, aligned, brief, count, duration, moment } from './wording';

const ERROR_LENGTH = 70;
const REASON_LENGTH = 40;

export async function listJobs(
  { pipeline }: OpenRescue,
  which: 'failed' | 'all',
  limit: number,
): Promise<Answer> {
  const lists = pipeline.rescueLists;
  const { jobs, total } = await lists[which](limit === 0 ? Number.POSITIVE_INFINITY : limit);
  const items = jobs.map((job) => ({
    jobId: job._id.toHexString(),
    ...jobListItem(job),
    phase: job.phase,
  }));
  const noun = which === 'failed' ? 'failed job' : 'job';
  const rows = items.map((item) => ({
    request: item.requestId,
    raffle: item.raffleId,
    state: item.currentState,
    queue: item.phase,
    tries: item.attemptCount,
    updated: ago(item.updatedAt),
    'last error': item.lastError === null ? null : brief(item.lastError, ERROR_LENGTH),
  }));
  return {
    exitCode: exitCodes.done,
    data: { jobs: items, total, truncated: items.length < total },
    lines: [
      ...(rows.length === 0
        ? []
        : [...table(rows, ['request', 'raffle', 'state', 'queue', 'tries', 'updated', 'last error']), '']),
      items.length < total
        ? `The first ${count(items.length, noun)} of ${total.toLocaleString('en-US')}: raise --limit, or give 0 for all.`
        : sentence(count(rows.length, noun)),
    ],
  };
}

export async function listStuck({ pipeline }: OpenRescue): Promise<Answer> {
  const draws = await pipeline.rescueLists.draws();
  const stuck = draws.filter(({ status }) => status === 'stuck').length;
  return {
    exitCode: stuck > 0 ? exitCodes.found : exitCodes.done,
    data: { stuck, draws },
    lines: [
      ...(draws.length === 0 ? [] : [...table(draws.map(drawRow), drawColumns), '']),
      draws.length === 0 ? 'No open draws.' : summaryOf(draws),
      ...unreadNote(draws),
    ],
  };
}

const drawColumns = [
  'status',
  'request',
  'raffle',
  'on chain',
  'in the queue',
  'age',
  'ledgers',
  'next step',
];

const drawRow = (draw: DrawReport): Record<string, unknown> => ({
  status: draw.status,
  request: draw.requestId,
  raffle: draw.raffleId,
  'on chain': draw.contractStatus,
  'in the queue': draw.queueState,
  age: duration(draw.ageMs),
  ledgers: draw.ledgerRange.lagLedgers,
  'next step': draw.nextStep,
});

function summaryOf(draws: readonly DrawReport[]): string {
  const statuses: DrawStatus[] = ['stuck', 'pending', 'confirmed', 'failed'];
  const counted = statuses
    .map((status) => ({ status, number: draws.filter((draw) => draw.status === status).length }))
    .filter(({ number }) => number > 0)
    .map(({ status, number }) => `${number.toLocaleString('en-US')} ${status}`);
  return `${count(draws.length, 'draw')}: ${counted.join(', ')}.`;
}

function unreadNote(draws: readonly DrawReport[]): string[] {
  const unread = draws.filter(({ contractStatus }) => contractStatus === 'unknown').length;
  return unread === 0
    ? []
    : [`${count(unread, 'raffle')} could not be read and may wait; the signals of --json say why.`];
}

export async function showLogs({ pipeline }: OpenRescue, query: RescueLogQuery): Promise<Answer> {
  const { entries, isLast } = await pipeline.rescueLog.page(query);
  return {
    exitCode: exitCodes.done,
    data: { logs: entries, truncated: !isLast },
    lines: [
      ...(entries.length === 0 ? ['Nothing was done yet.'] : table(entries.map(logRow), logColumns)),
      ...(isLast
        ? []
        : ['', `${count(entries.length, 'entry', 'entries')} shown: raise --limit for older ones.`]),
    ],
  };
}

const logColumns = ['when', 'action', 'request', 'raffle', 'by', 'reason', 'result', 'of it'];

const logRow = (entry: RescueLogEntry): Record<string, unknown> => ({
  when: moment(entry.timestamp),
  action: entry.action.toLowerCase().replace('_', '-'),
  request: entry.requestId,
  raffle: entry.raffleId,
  by: entry.operator,
  reason: brief(entry.reason, REASON_LENGTH),
  result: entry.result,
  'of it': brief(String(entry.details['message'] ?? entry.details['txHash'] ?? '-'), ERROR_LENGTH),
});

export async function verifyAudit({ pipeline }: OpenRescue): Promise<Answer> {
  const verdict = await pipeline.audit.verifyChain();
  return verdict.kind === 'intact'
    ? {
        exitCode: exitCodes.done,
        data: { ...verdict },
        lines: [`Intact: ${count(verdict.rows, 'row')}.`, ...aligned([['last hash', verdict.lastHash]])],
      }
    : {
        exitCode: exitCodes.found,
        data: { ...verdict },
        lines: [
          `Broken at row ${verdict.fault.seq}: ${problems[verdict.fault.problem] ?? verdict.fault.problem}.`,
        ],
      };
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

const problems: Partial<Record<string, string>> = {
  gap: 'a row before it is missing',
  broken_link: 'it does not hang on the row before it',
  altered_row: 'it is not what it was when it was written',
  rewritten: 'it is not the row that was written there',
  cut_off: 'it and what followed were cut off',
};
