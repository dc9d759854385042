import type Database from 'better-sqlite3';
import { isContractAddress } from '../stellar/keys';

/**
 * Contracts that were found at run time (deployed by a factory, say) and are read beside the configured ones. Kept in the
 * queue file, so that whoever was told of one need not be told again.
 */
export class FollowedContracts {
  private readonly sql;

  constructor(db: Database.Database) {
    this.sql = {
      // One that was read before goes on where it stands.
      follow: db.prepare(
        `INSERT INTO contracts (contractId, startLedger, followed) VALUES (@contractId, @startLedger, 1)
         ON CONFLICT (contractId) DO UPDATE SET followed = 1, startLedger =
           iif(cursor IS NULL AND startLedger IS NULL, excluded.startLedger, startLedger)
         WHERE followed = 0`,
      ),
      unfollow: db.prepare(
        'UPDATE contracts SET followed = 0, cursor = NULL, startLedger = NULL WHERE contractId = ? AND followed = 1',
      ),
      list: db.prepare('SELECT contractId FROM contracts WHERE followed = 1 ORDER BY key').pluck(),
    };
  }

  /**
   * From `startLedger` on. False when it is followed already.
   * @throws RangeError for what is no contract id or no ledger: servers would refuse every query that names it.
   */
  follow(contractId: string, startLedger: number): boolean {
    if (!isContractAddress(contractId)) throw new RangeError(`${contractId} is no contract id (C…)`);
    if (!Number.isSafeInteger(startLedger) || startLedger < 1)
      throw new RangeError(`${startLedger} is no ledger`);
    return this.sql.follow.run({ contractId, startLedger }).changes === 1;
  }

  /** Forgets how far it was read as well: followed again, it begins where it is told to. False when it was not followed. */
  unfollow(contractId: string): boolean {
    return this.sql.unfollow.run(contractId).changes === 1;
  }

  list(): string[] {
    return this.sql.list.all() as string[];
  }
}
