import { xdr } from '@stellar/stellar-sdk';

/** The host's error classes and codes that the simulated host can raise, by their Rust names. */
type HostErrorClass = 'wasmVm' | 'storage' | 'object' | 'crypto' | 'value' | 'auth';
type HostErrorCode =
  | 'missingValue'
  | 'invalidInput'
  | 'internalError'
  | 'invalidAction'
  | 'unexpectedType'
  | 'unexpectedSize'
  | 'existingValue'
  | 'exceededLimit';

const capitalised = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);

const errorCodes: Record<HostErrorCode, () => xdr.ScErrorCode> = {
  missingValue: () => xdr.ScErrorCode.scecMissingValue(),
  invalidInput: () => xdr.ScErrorCode.scecInvalidInput(),
  internalError: () => xdr.ScErrorCode.scecInternalError(),
  invalidAction: () => xdr.ScErrorCode.scecInvalidAction(),
  unexpectedType: () => xdr.ScErrorCode.scecUnexpectedType(),
  unexpectedSize: () => xdr.ScErrorCode.scecUnexpectedSize(),
  existingValue: () => xdr.ScErrorCode.scecExistingValue(),
  exceededLimit: () => xdr.ScErrorCode.scecExceededLimit(),
};

const errorClasses: Record<HostErrorClass, (code: xdr.ScErrorCode) => xdr.ScError> = {
  wasmVm: (code) => xdr.ScError.sceWasmVm(code),
  storage: (code) => xdr.ScError.sceStorage(code),
  object: (code) => xdr.ScError.sceObject(code),
  crypto: (code) => xdr.ScError.sceCrypto(code),
  value: (code) => xdr.ScError.sceValue(code),
  auth: (code) => xdr.ScError.sceAuth(code),
};

/** Why a contract call trapped: `Error(Contract, #6)` of the contract itself, or `Error(Auth, InvalidAction)` of the host. */
export class HostError extends Error {
  private constructor(
    /** As the host prints it, e.g. `Error(Contract, #6)`. */
    readonly label: string,
    readonly scError: xdr.ScError,
    readonly detail: string,
    /** Set when the contract itself raised it. */
    readonly contractCode?: number,
  ) {
    super(`HostError: ${label}: ${detail}`);
    this.name = 'HostError';
  }

  static contract(code: number, detail: string): HostError {
    return new HostError(`Error(Contract, #${code})`, xdr.ScError.sceContract(code), detail, code);
  }

  static host(errorClass: HostErrorClass, code: HostErrorCode, detail: string): HostError {
    const label = `Error(${capitalised(errorClass)}, ${capitalised(code)})`;
    return new HostError(label, errorClasses[errorClass](errorCodes[code]()), detail);
  }

  static unexpectedType(wanted: string, got: string): HostError {
    return HostError.host('value', 'unexpectedType', `expected ${wanted}, got ${got}`);
  }

  static unexpectedSize(wanted: number, got: number): HostError {
    return HostError.host('object', 'unexpectedSize', `expected ${wanted}, got ${got}`);
  }

  static missingValue(errorClass: HostErrorClass, detail: string): HostError {
    return HostError.host(errorClass, 'missingValue', detail);
  }

  toScVal(): xdr.ScVal {
    return xdr.ScVal.scvError(this.scError);
  }
}
