import { createHash } from 'node:crypto';
import { Address, scValToNative, StrKey, xdr } from '@stellar/stellar-sdk';
import { verifyEd25519 } from './ed25519';
import { HostError } from './host-error';
import type { StateOverlay } from './state';
import { contractDataKey } from './state';

export interface InvocationFrame {
  contractId: string;
  functionName: string;
  args: xdr.ScVal[];
  /** The contract that made this call, which is authorised by the call itself. */
  caller?: string;
}

export interface AuthContext {
  require(address: string, frame: InvocationFrame): void;
}

const invocationOf = (frame: InvocationFrame): xdr.SorobanAuthorizedInvocation =>
  new xdr.SorobanAuthorizedInvocation({
    function: xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(
      new xdr.InvokeContractArgs({
        contractAddress: Address.fromString(frame.contractId).toScAddress(),
        functionName: frame.functionName,
        args: frame.args,
      }),
    ),
    subInvocations: [],
  });

/** Simulation without entries: note what would have to be authorised, as the real preflight does. */
export class RecordingAuth implements AuthContext {
  private readonly recorded = new Map<string, xdr.SorobanAuthorizationEntry>();

  constructor(private readonly operationSource: string) {}

  require(address: string, frame: InvocationFrame): void {
    if (address === frame.caller) return;
    const invocation = invocationOf(frame);
    const identity = `${address}:${invocation.toXDR('base64')}`;
    if (this.recorded.has(identity)) return;
    const nonce = createHash('sha256').update(identity).digest().readBigInt64BE();
    const credentials =
      address === this.operationSource
        ? xdr.SorobanCredentials.sorobanCredentialsSourceAccount()
        : xdr.SorobanCredentials.sorobanCredentialsAddress(
            new xdr.SorobanAddressCredentials({
              address: Address.fromString(address).toScAddress(),
              nonce: xdr.Int64.fromString(nonce.toString()),
              signatureExpirationLedger: 0,
              signature: xdr.ScVal.scvVoid(),
            }),
          );
    this.recorded.set(
      identity,
      new xdr.SorobanAuthorizationEntry({ credentials, rootInvocation: invocation }),
    );
  }

  entries(): xdr.SorobanAuthorizationEntry[] {
    return [...this.recorded.values()];
  }
}

const authError = (detail: string): HostError => HostError.host('auth', 'invalidAction', detail);

interface Authorisation {
  address: string;
  invocations: Set<string>;
}

/** The functions of an authorisation tree, without their children: a call is looked up by contract, name and arguments. */
const flatten = (invocation: xdr.SorobanAuthorizedInvocation): string[] => [
  invocation.function().toXDR('base64'),
  ...invocation.subInvocations().flatMap(flatten),
];

/** A transaction in a ledger: only what its entries authorise goes through, and each nonce once. */
export class EnforcingAuth implements AuthContext {
  private readonly authorisations: Authorisation[];

  constructor(
    entries: xdr.SorobanAuthorizationEntry[],
    operationSource: string,
    private readonly networkId: Buffer,
    private readonly overlay: StateOverlay,
  ) {
    this.authorisations = entries.map((entry) => {
      const invocations = new Set(flatten(entry.rootInvocation()));
      if (entry.credentials().switch().name === 'sorobanCredentialsSourceAccount') {
        return { address: operationSource, invocations };
      }
      return { address: this.checkedAddress(entry), invocations };
    });
  }

  require(address: string, frame: InvocationFrame): void {
    if (address === frame.caller) return;
    const wanted = invocationOf(frame).function().toXDR('base64');
    const found = this.authorisations.some(
      (auth) => auth.address === address && auth.invocations.has(wanted),
    );
    if (!found) throw authError(`Unauthorized function call for address ${address}`);
  }

  private checkedAddress(entry: xdr.SorobanAuthorizationEntry): string {
    const credentials = entry.credentials().address();
    const address = Address.fromScAddress(credentials.address()).toString();
    const expiry = credentials.signatureExpirationLedger();
    if (expiry < this.overlay.ledger) throw authError(`signature has expired: ${expiry}`);
    if (!StrKey.isValidEd25519PublicKey(address)) throw authError(`${address} cannot sign here`);

    const payload = createHash('sha256')
      .update(
        xdr.HashIdPreimage.envelopeTypeSorobanAuthorization(
          new xdr.HashIdPreimageSorobanAuthorization({
            networkId: this.networkId,
            nonce: credentials.nonce(),
            signatureExpirationLedger: expiry,
            invocation: entry.rootInvocation(),
          }),
        ).toXDR(),
      )
      .digest();
    if (!signedBy(address, payload, credentials.signature())) throw authError(`bad signature of ${address}`);

    const nonceKey = xdr.ScVal.scvLedgerKeyNonce(new xdr.ScNonceKey({ nonce: credentials.nonce() }));
    const used = this.overlay.read(contractDataKey(address, nonceKey, 'temporary'));
    if (used?.record.kind === 'contractData' && used.record.liveUntilLedger >= this.overlay.ledger) {
      throw HostError.host('auth', 'existingValue', 'nonce already exists for address');
    }
    this.overlay.write({
      kind: 'contractData',
      contractId: address,
      key: nonceKey,
      value: xdr.ScVal.scvVoid(),
      durability: 'temporary',
      liveUntilLedger: expiry,
    });
    return address;
  }
}

/** Account signatures are a vector of {public_key, signature} maps; the simulated accounts have their master key only. */
const signedBy = (address: string, payload: Buffer, signature: xdr.ScVal): boolean => {
  const decoded: unknown = scValToNative(signature);
  if (!Array.isArray(decoded)) return false;
  return decoded.some((item: unknown) => {
    if (typeof item !== 'object' || item === null || !('public_key' in item) || !('signature' in item))
      return false;
    const { public_key: publicKey, signature: bytes } = item;
    return (
      publicKey instanceof Uint8Array &&
      bytes instanceof Uint8Array &&
      StrKey.encodeEd25519PublicKey(Buffer.from(publicKey)) === address &&
      verifyEd25519(publicKey, payload, bytes)
    );
  });
};
