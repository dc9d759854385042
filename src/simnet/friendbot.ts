import type { ServerResponse } from 'node:http';
import { Operation, StrKey } from '@stellar/stellar-sdk';
import type { Genesis } from './genesis';
import { fundedLumens } from './genesis';
import { sendJson } from './http-server';
import type { Ledger } from './ledger';

/** `GET` or `POST /friendbot?addr=G…`: creates the account by a transaction of the root account, as on test networks. */
export const serveFriendbot = async (
  ledger: Ledger,
  genesis: Genesis,
  closesByHand: boolean,
  url: URL,
  response: ServerResponse,
): Promise<void> => {
  const address = url.searchParams.get('addr') ?? '';
  if (!StrKey.isValidEd25519PublicKey(address)) {
    sendJson(response, 400, { status: 400, detail: 'addr must be a public key' });
    return;
  }
  if (ledger.account(address)) {
    sendJson(response, 400, { status: 400, detail: 'createAccountAlreadyExist' });
    return;
  }
  const landed = ledger.submitSystem(
    genesis.root,
    Operation.createAccount({ destination: address, startingBalance: fundedLumens.toString() }),
  );
  // Nobody else would close the ledger that the caller waits for.
  if (closesByHand) ledger.close();
  const { hash, envelopeXdr, ledger: sequence } = await landed;
  sendJson(response, 200, {
    successful: true,
    hash,
    ledger: sequence,
    envelope_xdr: envelopeXdr,
  });
};
