import { createHash } from 'node:crypto';
import { Keypair } from '@stellar/stellar-sdk';
import type { xdr } from '@stellar/stellar-sdk';
import { HostError } from '../host-error';
import { fromVal, toVal } from '../scval';
import { raffleErrors, randomnessTypes } from './raffle-errors';
import type { VerifyProof } from './raffle-proof';
import type { ContractContext, SimContract } from './sim-contract';
import { contractFunction } from './sim-contract';
import { storageKey } from './storage-key';

type RaffleStatus = 'OPEN' | 'DRAWING' | 'FINALIZED' | 'CANCELLED';

interface Raffle {
  raffleId: number;
  prizeStroops: bigint;
  status: RaffleStatus;
  requestId?: number;
  requestedLedger?: number;
  commitment?: Buffer;
  seed?: Buffer;
  proof?: Buffer;
}

export interface RaffleGenesis {
  admin: string;
  oracle: string;
  verifyProof: VerifyProof;
  requestedTopic: string;
  receivedTopic: string;
}

const eventVersion = 1;
const raffleKey = (id: number) => storageKey('Raffle', toVal.u32(id));
const optionalBytes = (bytes: Buffer | undefined) => toVal.option(bytes && toVal.bytes(bytes));
const optionalU32 = (value: number | undefined) =>
  toVal.option(value === undefined ? undefined : toVal.u32(value));

const raffleVal = (raffle: Raffle): xdr.ScVal =>
  toVal.struct({
    raffle_id: toVal.u32(raffle.raffleId),
    prize_amount: toVal.i128(raffle.prizeStroops),
    status: toVal.string(raffle.status),
    request_id: optionalU32(raffle.requestId),
    requested_ledger: optionalU32(raffle.requestedLedger),
    commitment: optionalBytes(raffle.commitment),
    seed: optionalBytes(raffle.seed),
    proof: optionalBytes(raffle.proof),
  });

const raffleFields = fromVal.struct<{
  raffle_id: number;
  prize_amount: bigint;
  status: string;
  request_id: number | undefined;
  requested_ledger: number | undefined;
  commitment: Buffer | undefined;
  seed: Buffer | undefined;
  proof: Buffer | undefined;
}>({
  raffle_id: fromVal.u32,
  prize_amount: fromVal.i128,
  status: fromVal.string,
  request_id: fromVal.option(fromVal.u32),
  requested_ledger: fromVal.option(fromVal.u32),
  commitment: fromVal.option(fromVal.bytes),
  seed: fromVal.option(fromVal.bytes),
  proof: fromVal.option(fromVal.bytes),
});

const load = (context: ContractContext, raffleId: number): Raffle => {
  const stored = context.get(raffleKey(raffleId));
  if (!stored) throw HostError.contract(raffleErrors.raffleNotFound, 'no such raffle');
  const fields = raffleFields(stored);
  return {
    raffleId,
    prizeStroops: fields.prize_amount,
    status: fields.status as RaffleStatus,
    ...(fields.request_id !== undefined && { requestId: fields.request_id }),
    ...(fields.requested_ledger !== undefined && { requestedLedger: fields.requested_ledger }),
    ...(fields.commitment && { commitment: fields.commitment }),
    ...(fields.seed && { seed: fields.seed }),
    ...(fields.proof && { proof: fields.proof }),
  };
};

const save = (context: ContractContext, raffle: Raffle): void =>
  context.set(raffleKey(raffle.raffleId), raffleVal(raffle));

const nextU32 = (context: ContractContext, counter: string): number => {
  const key = storageKey(counter);
  const value = (context.get(key)?.u32() ?? 0) + 1;
  context.set(key, toVal.u32(value));
  return value;
};

/** A raffle that waits for its seed; anything else is told apart by its code. */
const drawing = (context: ContractContext, raffleId: number): Raffle & { requestId: number } => {
  const raffle = load(context, raffleId);
  if (raffle.status === 'FINALIZED') {
    throw HostError.contract(raffleErrors.drawingAlreadyComplete, 'the raffle has its randomness');
  }
  if (raffle.status === 'CANCELLED')
    throw HostError.contract(raffleErrors.invalidStatus, 'the raffle is cancelled');
  if (raffle.requestId === undefined) {
    throw HostError.contract(raffleErrors.noRandomnessRequest, 'nobody asked for randomness');
  }
  return { ...raffle, requestId: raffle.requestId };
};

const drawOrder = fromVal.struct<{ prize_amount: bigint; priority: boolean }>({
  prize_amount: fromVal.i128,
  priority: fromVal.bool,
});

/** One contract with many raffles, by number: takes a 32-byte seed with its proof. */
export const raffleContract = (genesis: RaffleGenesis): SimContract => {
  const { admin, oracle, verifyProof } = genesis;
  const oracleKey = Keypair.fromPublicKey(oracle).rawPublicKey();

  const create = (context: ContractContext, prizeStroops: bigint): Raffle => {
    const raffle: Raffle = { raffleId: nextU32(context, 'RaffleCounter'), prizeStroops, status: 'OPEN' };
    save(context, raffle);
    context.emit(
      [toVal.symbol('RaffleCreated')],
      toVal.struct({
        raffle_id: toVal.u32(raffle.raffleId),
        creator: toVal.address(admin),
        prize_amount: toVal.i128(prizeStroops),
      }),
    );
    return raffle;
  };

  const request = (context: ContractContext, raffle: Raffle, priority: boolean): number => {
    const requestId = nextU32(context, 'RequestCounter');
    save(context, { ...raffle, status: 'DRAWING', requestId, requestedLedger: context.ledgerSequence });
    const raffleId = toVal.u32(raffle.raffleId);
    context.emit(
      [toVal.symbol('DrawTriggered')],
      toVal.struct({ raffle_id: raffleId, triggered_at_ledger: toVal.u32(context.ledgerSequence) }),
    );
    context.emit(
      [toVal.symbol(genesis.requestedTopic)],
      toVal.struct({
        raffle_id: raffleId,
        request_id: toVal.u32(requestId),
        prize_amount: toVal.i128(raffle.prizeStroops),
        priority: toVal.bool(priority),
        version: toVal.u32(eventVersion),
      }),
    );
    return requestId;
  };

  const finish = (
    context: ContractContext,
    raffle: Raffle & { requestId: number },
    seed: Buffer,
    proof: Buffer,
    type: number,
  ): void => {
    save(context, { ...raffle, status: 'FINALIZED', seed, proof });
    context.emit(
      [toVal.symbol(genesis.receivedTopic)],
      toVal.struct({
        raffle_id: toVal.u32(raffle.raffleId),
        request_id: toVal.u32(raffle.requestId),
        seed: toVal.bytes(seed),
        proof: toVal.bytes(proof),
        randomness_type: toVal.u32(type),
      }),
    );
  };

  return {
    name: 'raffle',
    initialise: () => undefined,
    functions: {
      get_raffle_data: contractFunction([fromVal.u32], (context, raffleId) =>
        raffleVal(load(context, raffleId)),
      ),

      create_raffle: contractFunction([fromVal.i128], (context, prize) => {
        context.requireAuth(admin);
        return toVal.u32(create(context, prize).raffleId);
      }),

      trigger_draw: contractFunction([fromVal.u32, fromVal.bool], (context, raffleId, priority) => {
        context.requireAuth(admin);
        const raffle = load(context, raffleId);
        if (raffle.status === 'DRAWING') {
          throw HostError.contract(raffleErrors.randomnessAlreadyRequested, 'randomness is on its way');
        }
        if (raffle.status !== 'OPEN')
          throw HostError.contract(raffleErrors.invalidStatus, 'the raffle is over');
        return toVal.u32(request(context, raffle, priority));
      }),

      /** Creates and draws many raffles in one transaction: how a demo or a test fills the chain. */
      draw_many: contractFunction([fromVal.vec(drawOrder)], (context, orders) => {
        context.requireAuth(admin);
        return toVal.vec(
          orders.map(({ prize_amount: prize, priority }) => {
            const raffle = create(context, prize);
            return toVal.struct({
              raffle_id: toVal.u32(raffle.raffleId),
              request_id: toVal.u32(request(context, raffle, priority)),
            });
          }),
        );
      }),

      receive_randomness: contractFunction(
        [fromVal.u32, fromVal.bytesN(32), fromVal.bytesN(64)],
        (context, raffleId, seed, proof) => {
          context.requireAuth(oracle);
          const raffle = drawing(context, raffleId);
          const method = verifyProof({
            networkId: context.networkId,
            contractId: context.contractId,
            requestId: String(raffle.requestId),
            raffleId,
            seed,
            proof,
            oracleKey,
            prizeStroops: raffle.prizeStroops,
          });
          if (!method) throw HostError.contract(raffleErrors.invalidParameters, 'the proof does not hold');
          finish(context, raffle, seed, proof, randomnessTypes[method]);
          return toVal.void();
        },
      ),

      commit_randomness: contractFunction(
        [fromVal.u32, fromVal.bytesN(32)],
        (context, raffleId, commitment) => {
          context.requireAuth(oracle);
          const raffle = load(context, raffleId);
          if (raffle.status !== 'OPEN' && raffle.status !== 'DRAWING') {
            throw HostError.contract(raffleErrors.invalidStatus, 'the raffle is over');
          }
          if (raffle.commitment) {
            throw HostError.contract(raffleErrors.invalidStateTransition, 'there is a commitment already');
          }
          save(context, { ...raffle, commitment });
          return toVal.void();
        },
      ),

      /** Opens the commitment, SHA-256 over the raw bytes of secret and nonce; the seed is that hash with the raffle's number. */
      reveal_randomness: contractFunction(
        [fromVal.u32, fromVal.bytesN(32), fromVal.bytesN(16)],
        (context, raffleId, secret, nonce) => {
          context.requireAuth(oracle);
          const raffle = drawing(context, raffleId);
          const opened = createHash('sha256').update(secret).update(nonce).digest();
          if (!raffle.commitment?.equals(opened)) {
            throw HostError.contract(raffleErrors.invalidParameters, 'the commitment does not open');
          }
          const number = Buffer.alloc(4);
          number.writeUInt32BE(raffleId);
          const seed = createHash('sha256').update(secret).update(nonce).update(number).digest();
          const proof = Buffer.concat([secret, nonce, Buffer.alloc(16)]);
          finish(context, raffle, seed, proof, randomnessTypes.vrf);
          return toVal.void();
        },
      ),

      cancel_raffle: contractFunction([fromVal.u32], (context, raffleId) => {
        context.requireAuth(admin);
        const raffle = load(context, raffleId);
        if (raffle.status === 'FINALIZED' || raffle.status === 'CANCELLED') {
          throw HostError.contract(raffleErrors.invalidStatus, 'the raffle is over');
        }
        save(context, { ...raffle, status: 'CANCELLED' });
        context.emit(
          [toVal.symbol('RaffleCancelled')],
          toVal.struct({ raffle_id: toVal.u32(raffleId), reason: toVal.string('cancelled by admin') }),
        );
        return toVal.void();
      }),
    },
  };
};
