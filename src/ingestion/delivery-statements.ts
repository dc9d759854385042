import type Database from 'better-sqlite3';

/** Deaths of its process after which a delivery is made with nothing else beside it. */
export const CRASHES_TO_SUSPECT = 2;

/** Deaths after which it is given up: three of them alone, since a process can also be killed from outside. */
export const CRASHES_TO_GIVE_UP = 5;

/** The SQL of {@link DeliveryStore}. Each names its index: a plan that scans would still answer, only ever slower. */
export function prepareDeliveryStatements(db: Database.Database) {
  const due = `iif(crashes >= ${CRASHES_TO_SUSPECT}, 'suspect', 'ready')`;
  const mine = 'WHERE seq = ? AND handler = ? AND leaseToken = ?';
  return {
    counter: db.prepare('SELECT value FROM counters WHERE name = ?'),
    setCounter: db.prepare('UPDATE counters SET value = ? WHERE name = ?'),
    claimMode: db.prepare(`INSERT INTO counters VALUES ('consumers', ?) ON CONFLICT DO NOTHING`),

    unrouted: db.prepare(
      'SELECT seq, contract, eventData FROM events WHERE seq > ? AND phase = 0 ORDER BY seq LIMIT ?',
    ),
    insertDelivery: db.prepare(
      `INSERT INTO deliveries (seq, handler, lane, state, maxAttempts) VALUES (?, ?, ?, 'ready', ?)
       ON CONFLICT DO NOTHING`,
    ),
    quarantine: db.prepare(
      `UPDATE events SET status = 'failed', phase = 2, error = ?, processTime = ? WHERE seq = ?`,
    ),

    anyReady: db.prepare(
      `SELECT 1 FROM deliveries INDEXED BY deliveries_ready WHERE handler = ? AND state = 'ready' LIMIT 1`,
    ),
    ready: db.prepare(
      `SELECT seq, attempts, maxAttempts FROM deliveries INDEXED BY deliveries_ready
       WHERE handler = ? AND lane = ? AND state = 'ready' AND seq < ? ORDER BY seq LIMIT ?`,
    ),
    nextLane: db.prepare(
      `SELECT min(lane) FROM deliveries INDEXED BY deliveries_ready
       WHERE handler = ? AND state = 'ready' AND lane > ?`,
    ),
    laneBusy: db.prepare(
      `SELECT 1 FROM deliveries INDEXED BY deliveries_leased
       WHERE handler = ? AND lane = ? AND state = 'leased' LIMIT 1`,
    ),
    firstHeld: db.prepare(
      `SELECT min(seq) FROM deliveries INDEXED BY deliveries_held
       WHERE handler = ? AND lane = ? AND state IN ('waiting', 'suspect')`,
    ),
    suspect: db.prepare(
      `SELECT seq, handler, attempts, maxAttempts FROM deliveries INDEXED BY deliveries_suspect
       WHERE state = 'suspect' AND handler IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT 1`,
    ),
    lease: db.prepare(
      `UPDATE deliveries SET state = 'leased', attempts = ?, leaseToken = ?, leaseUntil = ?
       WHERE seq = ? AND handler = ?`,
    ),

    remove: db.prepare(`DELETE FROM deliveries ${mine}`),
    retry: db.prepare(
      `UPDATE deliveries SET state = 'waiting', dueAt = ?, leaseToken = NULL, errorCode = ?, error = ? ${mine}`,
    ),
    postpone: db.prepare(
      `UPDATE deliveries SET state = 'waiting', attempts = attempts - 1, dueAt = ?, leaseToken = NULL, error = ?
       ${mine}`,
    ),
    handBack: db.prepare(
      `UPDATE deliveries SET state = ${due}, attempts = attempts - 1, leaseToken = NULL ${mine}`,
    ),
    kill: db.prepare(
      `UPDATE deliveries SET state = 'dead', diedAt = ?, leaseToken = NULL, errorCode = ?, error = ? ${mine}`,
    ),
    renew: db.prepare(`UPDATE deliveries SET leaseUntil = ? ${mine}`),
    leased: db.prepare(
      `SELECT seq, handler, attempts, maxAttempts, crashes, leaseToken, leaseUntil
       FROM deliveries INDEXED BY deliveries_leased WHERE state = 'leased'`,
    ),
    noteCrash: db.prepare(`UPDATE deliveries SET crashes = crashes + 1 ${mine}`),
    anyDue: db.prepare(
      `SELECT 1 FROM deliveries INDEXED BY deliveries_due WHERE state = 'waiting' AND dueAt <= ? LIMIT 1`,
    ),
    promoteDue: db.prepare(
      `UPDATE deliveries INDEXED BY deliveries_due SET state = ${due}, dueAt = NULL
       WHERE state = 'waiting' AND dueAt <= ?`,
    ),
    shiftDue: db.prepare(
      `UPDATE deliveries INDEXED BY deliveries_due SET dueAt = dueAt - ? WHERE state = 'waiting'`,
    ),
    nextDueAt: db.prepare(
      `SELECT min(dueAt) FROM deliveries INDEXED BY deliveries_due WHERE state = 'waiting'`,
    ),

    states: db.prepare('SELECT state FROM deliveries WHERE seq = ?'),
    setError: db.prepare('UPDATE events SET error = ? WHERE seq = ?'),
    setOpen: db.prepare('UPDATE events SET status = ?, attempts = max(attempts, ?) WHERE seq = ?'),
    setFinal: db.prepare(
      `UPDATE events SET status = ?, phase = ?, processTime = ?, attempts = max(attempts, ?) WHERE seq = ?`,
    ),

    backlog: db.prepare(
      `SELECT handler, sum(state IN ('ready', 'suspect')) AS ready, sum(state = 'waiting') AS waiting,
              sum(state = 'leased') AS leased, sum(state = 'dead') AS dead
       FROM (SELECT handler, state FROM deliveries INDEXED BY deliveries_ready WHERE state = 'ready'
             UNION ALL SELECT handler, state FROM deliveries INDEXED BY deliveries_held WHERE state IN ('waiting', 'suspect')
             UNION ALL SELECT handler, state FROM deliveries INDEXED BY deliveries_leased WHERE state = 'leased'
             UNION ALL SELECT handler, state FROM deliveries INDEXED BY deliveries_dead WHERE state = 'dead')
       GROUP BY handler ORDER BY handler`,
    ),
  };
}
