import { createHash } from 'node:crypto';
import { Keypair } from '@stellar/stellar-sdk';
import { bridgeContract } from './contracts/bridge';
import { oracleContract } from './contracts/oracle';
import { provenanceContract } from './contracts/provenance';
import { raffleContract } from './contracts/raffle';
import { raffleFactoryContract } from './contracts/raffle-factory';
import type { RaffleInstanceGenesis } from './contracts/raffle-instance';
import { raffleInstanceContract } from './contracts/raffle-instance';
import type { VerifyProof } from './contracts/raffle-proof';
import { registryContract } from './contracts/registry';
import type { Ledger } from './ledger';
import type { SimnetSettings } from './options';

export const stroopsPerLumen = 10_000_000n;
export const fundedLumens = 10_000n;
const totalLumens = 100_000_000_000n;
const serviceLumens = 1_000_000n;

export interface ContractIds {
  registry: string;
  oracle: string;
  provenance: string;
  /** Many raffles in one contract: `receive_randomness`. */
  raffle: string;
  /** One raffle, a contract of its own: `provide_randomness`. More of them are deployed on demand. */
  raffleInstance: string;
  /** Tells of raffles that are contracts of their own. */
  raffleFactory: string;
  /** Emits compact events. */
  bridge: string;
}

export interface Genesis {
  /** Holds all lumens, and pays what friendbot gives. */
  root: Keypair;
  /** Admin of all contracts. */
  admin: Keypair;
  /** The address that provenance and raffles take work from, and a trusted provider in registry and oracle. */
  oracle: Keypair;
  funded: Keypair[];
  contracts: ContractIds;
  /** Hex; the code measurement that the registry trusts. */
  teeHash: string;
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Keys of a test network, repeatable and therefore public: worthless anywhere else. */
const keypairOf = (settings: SimnetSettings, name: string): Keypair =>
  Keypair.fromRawEd25519Seed(sha256(`${settings.networkPassphrase}:${settings.seed}:${name}`));

export interface RaffleInstanceInput {
  prizeLumens?: number;
  /** Randomness sooner than that many ledgers after the request is refused. */
  minDelayLedgers?: number;
}

export const raffleInstanceOf = (
  admin: string,
  oracle: string,
  { prizeLumens = 1000, minDelayLedgers = 0 }: RaffleInstanceInput,
): RaffleInstanceGenesis => ({
  admin,
  creator: admin,
  oracle,
  prizeStroops: BigInt(prizeLumens) * stroopsPerLumen,
  tickets: [admin, oracle],
  minDelayLedgers,
});

/** Accounts and contracts as they stand before the first ledger closes. */
export const createGenesis = (
  ledger: Ledger,
  settings: SimnetSettings,
  verifyProof: VerifyProof,
): Genesis => {
  const root = Keypair.master(settings.networkPassphrase);
  const admin = keypairOf(settings, 'admin');
  const oracle = keypairOf(settings, 'oracle');
  const funded = Array.from({ length: settings.fundedAccounts }, (_, index) =>
    keypairOf(settings, `funded-${index}`),
  );
  const { host } = ledger;
  const contracts: ContractIds = {
    registry: host.contractIdFor('registry'),
    oracle: host.contractIdFor('oracle'),
    provenance: host.contractIdFor('provenance'),
    raffle: host.contractIdFor('raffle'),
    raffleInstance: host.contractIdFor('raffle-instance-1'),
    raffleFactory: host.contractIdFor('raffle-factory'),
    bridge: host.contractIdFor('bridge'),
  };
  const teeHash = sha256(`${settings.networkPassphrase}:tee`);

  ledger.edit((overlay, info) => {
    const sequence = BigInt(info.sequence) << 32n;
    const open = (keypair: Keypair, lumens: bigint): void =>
      overlay.write({
        kind: 'account',
        accountId: keypair.publicKey(),
        balance: lumens * stroopsPerLumen,
        sequence,
      });
    open(root, totalLumens);
    for (const keypair of [admin, oracle]) open(keypair, serviceLumens);
    for (const keypair of funded) open(keypair, fundedLumens);

    host.deploy(
      contracts.registry,
      registryContract({
        admin: admin.publicKey(),
        teeHashes: [teeHash],
        providers: [oracle.rawPublicKey()],
      }),
      overlay,
      info,
    );
    host.deploy(
      contracts.oracle,
      oracleContract({
        admin: admin.publicKey(),
        registry: contracts.registry,
        providers: [oracle.publicKey()],
      }),
      overlay,
      info,
    );
    host.deploy(contracts.provenance, provenanceContract(oracle.publicKey()), overlay, info);
    host.deploy(
      contracts.raffle,
      raffleContract({
        admin: admin.publicKey(),
        oracle: oracle.publicKey(),
        verifyProof,
        requestedTopic: settings.raffleRequestedTopic,
        receivedTopic: settings.raffleReceivedTopic,
      }),
      overlay,
      info,
    );
    host.deploy(
      contracts.raffleInstance,
      raffleInstanceContract(raffleInstanceOf(admin.publicKey(), oracle.publicKey(), {})),
      overlay,
      info,
    );
    host.deploy(contracts.raffleFactory, raffleFactoryContract(admin.publicKey()), overlay, info);
    host.deploy(contracts.bridge, bridgeContract(admin.publicKey()), overlay, info);
  });
  return { root, admin, oracle, funded, contracts, teeHash: teeHash.toString('hex') };
};
