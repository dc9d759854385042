import type { Connection } from 'mongoose';
import { randomnessJobModel } from '../../randomness/jobs/randomness-job.model';
import type { Simnet } from '../../simnet';
import { verificationRequestModel } from '../../verification/verification-request.model';
import type { Workload } from './workload';

/** What became of the work so far. What landed is read from the simulated ledger, the rest from the database. */
export interface Census {
  requests: number;
  /** Valid requests whose certificate is on the ledger. */
  minted: number;
  /** What the ledger holds beyond one certificate for each valid request and one delivery for each raffle. */
  duplicates: number;
  rejected: number;
  deadLettered: number;
  /** Requests and raffles without an end. */
  stuck: number;
  /** Raffles that asked for randomness on the ledger. */
  raffles: number;
  /** Raffles whose randomness is on the ledger. */
  rafflesDelivered: number;
}

/** Longer than any demo: the model only counts here, and the processes made its indexes. */
const RETENTION_MS = 24 * 3_600_000;

interface Ends {
  done: number;
  rejected: number;
  dead: number;
}

export async function takeCensus(
  connection: Connection,
  simnet: Simnet,
  workload: Workload,
): Promise<Census> {
  const [verification, randomness] = await Promise.all([
    countRequestEnds(connection),
    countRaffleEnds(connection),
  ]);
  const certificates = simnet.observer.certificates();
  const certified = new Set(certificates.map(({ manifestHash }) => manifestHash));
  const minted = workload.requests.filter(
    ({ valid, manifestHash }) => valid && certified.has(manifestHash),
  ).length;
  const deliveries = simnet.observer.raffleDeliveries();
  const rafflesDelivered = new Set(deliveries.map(({ raffleId }) => raffleId)).size;
  const all = workload.requests.length + workload.raffles.length;
  const ended = [verification, randomness].reduce(
    (sum, { done, rejected, dead }) => sum + done + rejected + dead,
    0,
  );
  return {
    requests: workload.requests.length,
    minted,
    duplicates: certificates.length - minted + deliveries.length - rafflesDelivered,
    rejected: verification.rejected,
    deadLettered: verification.dead + randomness.dead,
    stuck: all - ended,
    raffles: simnet.observer.raffleRequests().length,
    rafflesDelivered,
  };
}

async function countRequestEnds(connection: Connection): Promise<Ends> {
  const requests = verificationRequestModel(connection);
  const [done, rejected, dead] = await Promise.all([
    requests.countDocuments({ phase: 'done', outcome: 'minted' }),
    requests.countDocuments({ phase: 'done', outcome: 'rejected' }),
    requests.countDocuments({ phase: 'dead' }),
  ]);
  return { done, rejected, dead };
}

async function countRaffleEnds(connection: Connection): Promise<Ends> {
  const jobs = randomnessJobModel(connection, RETENTION_MS);
  const [done, dead] = await Promise.all([
    jobs.countDocuments({ phase: 'done' }),
    jobs.countDocuments({ phase: 'dead' }),
  ]);
  return { done, rejected: 0, dead };
}

/** Every valid request minted once, every other one rejected, every raffle delivered once, nothing left over. */
export function isFlawless(census: Census, workload: Workload): boolean {
  const valid = workload.requests.filter((request) => request.valid).length;
  return (
    census.minted === valid &&
    census.rejected === census.requests - valid &&
    census.raffles === workload.raffles.length &&
    census.rafflesDelivered === census.raffles &&
    census.duplicates === 0 &&
    census.deadLettered === 0 &&
    census.stuck === 0
  );
}
