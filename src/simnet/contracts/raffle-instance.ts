import { createHash } from 'node:crypto';
import { Keypair } from '@stellar/stellar-sdk';
import { verifyEd25519 } from '../ed25519';
import { HostError } from '../host-error';
import { fromVal, toVal } from '../scval';
import { raffleErrors, randomnessTypes } from './raffle-errors';
import type { ContractContext, SimContract } from './sim-contract';
import { contractFunction } from './sim-contract';
import { storageKey } from './storage-key';

/** After this many ledgers without randomness (about 17 minutes) creator and admin may fall back. */
export const oracleTimeoutLedgers = 200;

const statuses = { active: 0, drawing: 1, finalized: 2, cancelled: 3 } as const;

interface Draw {
  status: number;
  requestId?: bigint;
  requestLedger: number;
  seed?: bigint;
  type?: number;
}

export interface RaffleInstanceGenesis {
  admin: string;
  creator: string;
  oracle: string;
  prizeStroops: bigint;
  /** Who holds the tickets, from number 1. */
  tickets: string[];
  /** Randomness sooner than that many ledgers after the request is refused. */
  minDelayLedgers: number;
}

const drawKey = storageKey('Draw');

const fields = fromVal.struct<{
  status: number;
  request_id: bigint | undefined;
  request_ledger: number;
  seed: bigint | undefined;
  randomness_type: number | undefined;
}>({
  status: fromVal.u32,
  request_id: fromVal.option(fromVal.u64),
  request_ledger: fromVal.u32,
  seed: fromVal.option(fromVal.u64),
  randomness_type: fromVal.option(fromVal.u32),
});

const load = (context: ContractContext): Draw => {
  const stored = context.get(drawKey);
  if (!stored) return { status: statuses.active, requestLedger: 0 };
  const draw = fields(stored);
  return {
    status: draw.status,
    requestLedger: draw.request_ledger,
    ...(draw.request_id !== undefined && { requestId: draw.request_id }),
    ...(draw.seed !== undefined && { seed: draw.seed }),
    ...(draw.randomness_type !== undefined && { type: draw.randomness_type }),
  };
};

const optionalU64 = (value: bigint | undefined) =>
  toVal.option(value === undefined ? undefined : toVal.u64(value));

const save = (context: ContractContext, draw: Draw): void =>
  context.set(
    drawKey,
    toVal.struct({
      status: toVal.u32(draw.status),
      request_id: optionalU64(draw.requestId),
      request_ledger: toVal.u32(draw.requestLedger),
      seed: optionalU64(draw.seed),
      randomness_type: toVal.option(draw.type === undefined ? undefined : toVal.u32(draw.type)),
    }),
  );

/** First eight bytes of the SHA-256 over the XDR of time, ledger and contract: both the request id and the fallback seed. */
const digestOfNow = (context: ContractContext): bigint => {
  const facts = [
    toVal.u64(context.timestamp),
    toVal.u32(context.ledgerSequence),
    toVal.address(context.contractId),
  ];
  return createHash('sha256').update(toVal.vec(facts).toXDR()).digest().readBigUInt64BE();
};

/** What the oracle signs. */
export const provideRandomnessMessage = (contractId: string, requestId: bigint, seed: bigint): Buffer =>
  toVal.vec([toVal.address(contractId), toVal.u64(requestId), toVal.u64(seed)]).toXDR();

/** One raffle as a contract of its own: takes a 64-bit seed that the oracle's key has signed. */
export const raffleInstanceContract = (genesis: RaffleInstanceGenesis): SimContract => {
  const { admin, creator, oracle, prizeStroops, tickets, minDelayLedgers } = genesis;
  const oracleKey = Keypair.fromPublicKey(oracle).rawPublicKey();

  const finish = (context: ContractContext, draw: Draw, seed: bigint, type: number): string => {
    const index = Number(seed % BigInt(tickets.length));
    const winner = tickets[index] ?? creator;
    save(context, { ...draw, status: statuses.finalized, seed, type });
    context.emit(
      [toVal.symbol('raffle_finalized')],
      toVal.struct({
        raffle_id: toVal.address(context.contractId),
        winners: toVal.vec([toVal.address(winner)]),
        winning_ticket_ids: toVal.vec([toVal.u32(index + 1)]),
        total_tickets_sold: toVal.u32(tickets.length),
        randomness_type: toVal.u32(type),
        finalized_at: toVal.u64(context.timestamp),
      }),
    );
    return winner;
  };

  return {
    name: 'raffle-instance',
    initialise: () => undefined,
    functions: {
      get_raffle: contractFunction([], (context) =>
        toVal.struct({
          status: toVal.u32(load(context).status),
          creator: toVal.address(creator),
          prize_amount: toVal.i128(prizeStroops),
          tickets_sold: toVal.u32(tickets.length),
        }),
      ),

      get_fairness_data: contractFunction([], (context) => {
        const draw = load(context);
        return toVal.struct({
          request_id: optionalU64(draw.requestId),
          request_ledger: toVal.u32(draw.requestLedger),
          random_seed: optionalU64(draw.seed),
          randomness_type: toVal.option(draw.type === undefined ? undefined : toVal.u32(draw.type)),
        });
      }),

      /** Starts the draw and asks the oracle. */
      finalize_raffle: contractFunction([], (context) => {
        context.requireAuth(admin);
        const draw = load(context);
        if (draw.status === statuses.drawing) {
          throw HostError.contract(raffleErrors.drawingAlreadyInProgress, 'the draw has begun');
        }
        if (draw.status !== statuses.active)
          throw HostError.contract(raffleErrors.invalidStatus, 'the raffle is over');
        const requestId = digestOfNow(context);
        save(context, { status: statuses.drawing, requestId, requestLedger: context.ledgerSequence });
        context.emit(
          [toVal.symbol('draw_triggered')],
          toVal.struct({
            caller: toVal.address(admin),
            total_tickets_sold: toVal.u32(tickets.length),
            timestamp: toVal.u64(context.timestamp),
          }),
        );
        context.emit(
          [toVal.symbol('randomness_requested')],
          toVal.struct({
            oracle: toVal.address(oracle),
            request_id: toVal.u64(requestId),
            timestamp: toVal.u64(context.timestamp),
          }),
        );
        return toVal.u64(requestId);
      }),

      provide_randomness: contractFunction(
        [fromVal.u64, fromVal.bytesN(32), fromVal.bytesN(64), fromVal.u64],
        (context, seed, publicKey, proof, requestId) => {
          context.requireAuth(oracle);
          const draw = load(context);
          if (draw.status === statuses.finalized) {
            throw HostError.contract(raffleErrors.drawingAlreadyComplete, 'the raffle has its randomness');
          }
          if (draw.status !== statuses.drawing) {
            throw HostError.contract(raffleErrors.invalidStatus, 'the raffle is not drawing');
          }
          if (draw.requestId !== requestId) {
            throw HostError.contract(raffleErrors.noRandomnessRequest, 'no request has that id');
          }
          // Any key's proof passes the published contract; here it has to be the registered one.
          if (!oracleKey.equals(publicKey)) {
            throw HostError.contract(raffleErrors.notAuthorized, "the key is not the oracle's");
          }
          if (
            !verifyEd25519(publicKey, provideRandomnessMessage(context.contractId, requestId, seed), proof)
          ) {
            throw HostError.contract(raffleErrors.invalidParameters, 'the proof does not hold');
          }
          if (context.ledgerSequence < draw.requestLedger + minDelayLedgers) {
            throw HostError.contract(raffleErrors.randomnessTooEarly, 'too soon after the request');
          }
          const winner = finish(context, draw, seed, randomnessTypes.vrf);
          context.emit(
            [toVal.symbol('randomness_received')],
            toVal.struct({
              oracle: toVal.address(oracle),
              seed: toVal.u64(seed),
              request_id: toVal.u64(requestId),
              timestamp: toVal.u64(context.timestamp),
            }),
          );
          return toVal.address(winner);
        },
      ),

      trigger_randomness_fallback: contractFunction(
        [fromVal.address, fromVal.bool],
        (context, caller, doRefund) => {
          context.requireAuth(caller);
          if (caller !== admin && caller !== creator) {
            throw HostError.contract(raffleErrors.notAuthorized, 'only creator and admin may fall back');
          }
          const draw = load(context);
          if (draw.status !== statuses.drawing) {
            throw HostError.contract(raffleErrors.invalidStatus, 'the raffle is not drawing');
          }
          if (context.ledgerSequence < draw.requestLedger + oracleTimeoutLedgers) {
            throw HostError.contract(raffleErrors.fallbackTooEarly, 'the oracle still has time');
          }
          const seed = digestOfNow(context);
          if (doRefund) {
            save(context, { ...draw, status: statuses.cancelled });
            context.emit(
              [toVal.symbol('raffle_cancelled')],
              toVal.struct({
                raffle_id: toVal.address(context.contractId),
                reason: toVal.string('oracle timeout'),
              }),
            );
          } else {
            finish(context, draw, seed, randomnessTypes.fallback);
          }
          context.emit(
            [toVal.symbol('randomness_fallback_triggered')],
            toVal.struct({
              triggered_by: toVal.address(caller),
              seed_used: toVal.u64(doRefund ? 0n : seed),
              request_ledger: toVal.u32(draw.requestLedger),
              fallback_ledger: toVal.u32(context.ledgerSequence),
              timestamp: toVal.u64(context.timestamp),
            }),
          );
          return toVal.void();
        },
      ),

      cancel_raffle: contractFunction([], (context) => {
        context.requireAuth(admin);
        const draw = load(context);
        if (draw.status > statuses.drawing)
          throw HostError.contract(raffleErrors.invalidStatus, 'the raffle is over');
        save(context, { ...draw, status: statuses.cancelled });
        context.emit(
          [toVal.symbol('raffle_cancelled')],
          toVal.struct({
            raffle_id: toVal.address(context.contractId),
            reason: toVal.string('cancelled by admin'),
          }),
        );
        return toVal.void();
      }),
    },
  };
};
