import { systemClock } from '../../../src/platform/clock';
import { AuditTrail } from '../../../src/randomness/audit/audit-trail';
import type { AuditEntry } from '../../../src/randomness/audit/audit-chain';
import mongoose, { type Connection } from 'mongoose';
import { openTestDatabase, type TestDatabase } from '../../support/database';

let database: TestDatabase;
let other: Connection;
let trails: AuditTrail[];
beforeAll(async () => {
  database = await openTestDatabase();
  other = await mongoose.createConnection(database.uri, { autoIndex: false, autoCreate: false }).asPromise();
  trails = [new AuditTrail(database.connection, systemClock), new AuditTrail(other, systemClock)];
  await trails[0]!.ensureIndexes();
});
afterAll(async () => {
  await other.close();
  await database.close();
});

const entry = (name: string): AuditEntry => ({
  event: 'committed',
  eventKey: name,
  requestId: `req-${name}`,
  raffleId: 1,
  data: { commitment: 'ab'.repeat(32), attempt: 1, note: 'ü "quoted"', none: null },
});
const rows = () => database.connection.db!.collection<{ _id: number; data: object }>('randomnessAudit');

describe('the audit trail', () => {
  it('is one chain without a gap, however many append at once', async () => {
    await Promise.all(
      Array.from({ length: 120 }, (_, index) => trails[index % 2]!.append(entry(`event-${index}`))),
    );
    expect(await trails[0]!.verifyChain()).toMatchObject({ kind: 'intact', rows: 120 });
  });

  it('has one row for one event', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, index) => trails[index % 2]!.append(entry('the same'))));
    await trails[1]!.append(entry('the same'));
    expect(await rows().countDocuments({ eventKey: 'the same' })).toBe(1);
    expect(await trails[1]!.verifyChain()).toMatchObject({ kind: 'intact', rows: 121 });
  });

  it('shows an altered, a removed and a re-numbered row', async () => {
    const row = (await rows().findOne({ _id: 50 }))!;
    await rows().updateOne({ _id: 50 }, { $set: { 'data.commitment': 'cd'.repeat(32) } });
    expect(await trails[0]!.verifyChain()).toEqual({
      kind: 'broken',
      fault: { seq: 50, problem: 'altered_row' },
    });
    await rows().deleteOne({ _id: 50 });
    expect(await trails[0]!.verifyChain()).toEqual({ kind: 'broken', fault: { seq: 51, problem: 'gap' } });
    await rows().insertOne(row);
    expect(await trails[0]!.verifyChain()).toMatchObject({ kind: 'intact' });
    const last = (await rows().findOne({ _id: 121 }))!;
    await rows().deleteMany({ _id: { $gte: 120 } });
    await rows().insertOne({ ...last, _id: 120 });
    expect(await trails[0]!.verifyChain()).toEqual({
      kind: 'broken',
      fault: { seq: 120, problem: 'broken_link' },
    });
  });

  it('shows that its end was cut off, and that other rows have grown in its place', async () => {
    const trail = trails[0]!;
    await rows().deleteMany({});
    await database.connection.collection('randomnessAuditHead').deleteMany({});
    await trail.append(entry('first'));
    await trail.append(entry('second'));
    expect(await trail.verifyChain()).toMatchObject({ kind: 'intact', rows: 2 });
    await rows().deleteOne({ _id: 2 });
    expect(await trail.verifyChain()).toEqual({ kind: 'broken', fault: { seq: 2, problem: 'cut_off' } });
    await rows().deleteMany({});
    expect(await trail.verifyChain()).toEqual({ kind: 'broken', fault: { seq: 1, problem: 'cut_off' } });
    await trail.append(entry('other'));
    await trail.append(entry('another'));
    expect(await trail.verifyChain()).toEqual({ kind: 'broken', fault: { seq: 2, problem: 'rewritten' } });
  });
});
