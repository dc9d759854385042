import { MongoClient, MongoServerError } from 'mongodb';

/** What one process of the contest did with all of its clients. */
export interface Tally {
  readonly claimed: number[];
  readonly inserted: number;
  readonly refused: number;
  readonly upserted: number;
}

const DUPLICATE_KEY = 11000;

interface Job {
  _id: number;
  status: string;
  owner?: string;
}

async function claimAll(client: MongoClient, owner: string): Promise<number[]> {
  const jobs = client.db('contest').collection<Job>('jobs');
  const claimed: number[] = [];
  for (;;) {
    const job = await jobs.findOneAndUpdate(
      { status: 'ready' },
      { $set: { status: 'claimed', owner } },
      { sort: { _id: 1 }, returnDocument: 'after' },
    );
    if (!job) return claimed;
    if (job.owner !== owner) throw new Error(`${String(job.owner)} got in between`);
    claimed.push(job._id);
  }
}

async function insertAll(client: MongoClient, keys: number): Promise<{ inserted: number; refused: number }> {
  const unique = client.db('contest').collection<{ key: number }>('unique');
  let [inserted, refused] = [0, 0];
  for (let key = 0; key < keys; key++) {
    try {
      await unique.insertOne({ key });
      inserted++;
    } catch (error) {
      if (!(error instanceof MongoServerError) || error.code !== DUPLICATE_KEY) throw error;
      refused++;
    }
  }
  return { inserted, refused };
}

async function upsertAll(client: MongoClient, keys: number): Promise<number> {
  const counters = client.db('contest').collection<{ key: number; n: number }>('counters');
  let upserted = 0;
  for (let key = 0; key < keys; key++) {
    const result = await counters.updateOne({ key }, { $inc: { n: 1 } }, { upsert: true });
    upserted += result.upsertedCount;
  }
  return upserted;
}

async function contend(uri: string, clients: number, keys: number): Promise<void> {
  const connected = await Promise.all(Array.from({ length: clients }, () => new MongoClient(uri).connect()));
  process.send?.('ready');
  await new Promise((resolve) => process.once('message', resolve));
  const claimed = await Promise.all(connected.map((each, i) => claimAll(each, `${process.pid}/${i}`)));
  const inserted = await Promise.all(connected.map((each) => insertAll(each, keys)));
  const upserted = await Promise.all(connected.map((each) => upsertAll(each, keys)));
  await Promise.all(connected.map((each) => each.close()));
  const tally: Tally = {
    claimed: claimed.flat(),
    inserted: inserted.reduce((sum, each) => sum + each.inserted, 0),
    refused: inserted.reduce((sum, each) => sum + each.refused, 0),
    upserted: upserted.reduce((sum, each) => sum + each, 0),
  };
  process.send?.(tally);
  process.disconnect();
}

const [uri = '', clients = '', keys = ''] = process.argv.slice(2);
void contend(uri, Number(clients), Number(keys));
