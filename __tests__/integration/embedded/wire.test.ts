import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { once } from 'node:events';
import { BSON, MongoClient } from 'mongodb';
import type { EmbeddedServer } from '../../../src/embedded';
import { startEmbeddedServer } from '../../../src/embedded';
import { crc32c } from '../../../src/embedded/wire/crc32c';

const OP_MSG = 2013;
const OP_QUERY = 2004;
const CHECKSUM_PRESENT = 1;
const MORE_TO_COME = 2;

const warnings: string[] = [];
let server: EmbeddedServer;
let client: MongoClient;

beforeAll(async () => {
  server = await startEmbeddedServer({
    logger: { info: () => undefined, warn: (message) => warnings.push(message) },
  });
  client = await new MongoClient(server.uri).connect();
});

afterAll(async () => {
  await client.close();
  await server.close();
});

beforeEach(() => {
  warnings.length = 0;
});

function int32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, i) => bytes.writeInt32LE(value, i * 4));
  return bytes;
}

function frame(opcode: number, ...parts: Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([int32(16 + body.length, 7, 0, opcode), body]);
}

const bodySection = (document: object): Buffer => Buffer.concat([Buffer.from([0]), BSON.serialize(document)]);

function sequenceSection(name: string, documents: object[]): Buffer {
  const content = Buffer.concat([Buffer.from(`${name}\0`), ...documents.map((each) => BSON.serialize(each))]);
  return Buffer.concat([Buffer.from([1]), int32(4 + content.length), content]);
}

const message = (document: object, flags = 0): Buffer => frame(OP_MSG, int32(flags), bodySection(document));

async function open(): Promise<Socket> {
  const socket = connect(server.port, '127.0.0.1');
  await once(socket, 'connect');
  socket.on('error', () => undefined);
  return socket;
}

/** Reads so many replies, however they arrive. */
async function readReplies(
  socket: Socket,
  count: number,
): Promise<{ responseTo: number; opcode: number; body: BSON.Document }[]> {
  const replies = [];
  let buffered = Buffer.alloc(0);
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    buffered = Buffer.concat([buffered, chunk as Buffer]);
    while (buffered.length >= 16 && buffered.length >= buffered.readInt32LE(0)) {
      const bytes = buffered.subarray(0, buffered.readInt32LE(0));
      buffered = buffered.subarray(bytes.length);
      const opcode = bytes.readInt32LE(12);
      replies.push({
        responseTo: bytes.readInt32LE(8),
        opcode,
        body: BSON.deserialize(bytes.subarray(opcode === OP_MSG ? 21 : 36)),
      });
    }
    if (replies.length >= count) return replies;
  }
  throw new Error(`the connection ended after ${replies.length} of ${count} replies`);
}

describe('framing', () => {
  it('takes a message byte by byte, and several in one piece, and answers in their order', async () => {
    const socket = await open();
    const ping = message({ ping: 1, $db: 'admin' });
    for (const byte of ping) socket.write(Buffer.from([byte]));
    expect((await readReplies(socket, 1))[0]?.body.ok).toBe(1);
    socket.write(Buffer.concat([ping, message({ noSuchCommand: 1, $db: 'admin' }), ping]));
    const replies = await readReplies(socket, 3);
    expect(replies.map(({ body }) => body.ok as unknown)).toEqual([1, 0, 1]);
    expect(replies[1]).toMatchObject({ responseTo: 7, body: { code: 59, codeName: 'CommandNotFound' } });
    socket.destroy();
  });

  it('takes documents in a section of their own, before or after the body, and a right checksum', async () => {
    const socket = await open();
    const sections = [
      sequenceSection('documents', [{ _id: 1 }, { _id: 2 }]),
      bodySection({ insert: 'sections', $db: 'wire' }),
    ];
    socket.write(frame(OP_MSG, int32(0), ...sections));
    expect((await readReplies(socket, 1))[0]?.body).toMatchObject({ n: 2, ok: 1 });
    const unsigned = message({ ping: 1, $db: 'admin' }, CHECKSUM_PRESENT);
    unsigned.writeInt32LE(unsigned.length + 4, 0);
    socket.write(Buffer.concat([unsigned, int32(crc32c(unsigned) | 0)]));
    expect((await readReplies(socket, 1))[0]?.body.ok).toBe(1);
    socket.destroy();
  });

  it('answers the legacy handshake in kind', async () => {
    const socket = await open();
    socket.write(
      frame(
        OP_QUERY,
        int32(0),
        Buffer.from('admin.$cmd\0'),
        int32(0, -1),
        BSON.serialize({ isMaster: 1, helloOk: true }),
      ),
    );
    const [reply] = await readReplies(socket, 1);
    expect(reply).toMatchObject({
      opcode: 1,
      body: { ismaster: true, helloOk: true, maxWireVersion: 21, ok: 1 },
    });
    expect(reply?.body).not.toHaveProperty('setName');
    socket.destroy();
  });

  it('gives no reply to what is not acknowledged', async () => {
    const socket = await open();
    socket.write(message({ insert: 'quiet', documents: [{ _id: 1 }], $db: 'wire' }, MORE_TO_COME));
    socket.write(message({ find: 'quiet', $db: 'wire' }));
    const [reply] = await readReplies(socket, 1);
    expect((reply?.body.cursor as { firstBatch: unknown[] }).firstBatch).toEqual([{ _id: 1 }]);
    socket.destroy();
  });

  it('refuses a database that no server would make, and goes on', async () => {
    const socket = await open();
    for (const $db of ['no such', 'no.such', 'no$such']) {
      socket.write(message({ insert: 'things', documents: [{ _id: 1 }], $db }));
      expect((await readReplies(socket, 1))[0]?.body).toMatchObject({ ok: 0, code: 73 });
    }
    socket.destroy();
  });

  const badChecksum = message({ ping: 1, $db: 'admin' }, CHECKSUM_PRESENT);
  const longString = BSON.serialize({ ping: 'x', $db: 'admin' });
  new DataView(longString.buffer, longString.byteOffset).setInt32(4 + 1 + 5, 1_000_000, true);

  const element = (type: number, name: string, ...value: Uint8Array[]): Buffer =>
    Buffer.concat([Buffer.from([type]), Buffer.from(`${name}\0`), ...value]);
  const rawDocument = (...elements: Buffer[]): Buffer => {
    const content = Buffer.concat(elements);
    return Buffer.concat([int32(content.length + 5), content, Buffer.from([0])]);
  };
  const rawMessage = (...elements: Buffer[]): Buffer =>
    frame(OP_MSG, int32(0), Buffer.from([0]), rawDocument(element(0x10, 'ping', int32(1)), ...elements));
  const text = (bytes: Buffer): Buffer => Buffer.concat([int32(bytes.length + 1), bytes, Buffer.from([0])]);

  it.each([
    ['a length below a header', int32(15, 1, 0, OP_MSG)],
    ['a negative length', int32(-1, 1, 0, OP_MSG)],
    ['a length over 48 MB', int32(48_000_001, 1, 0, OP_MSG)],
    ['an unknown opcode', frame(2012, int32(0))],
    ['unknown flags', message({ ping: 1, $db: 'admin' }, 1 << 5)],
    ['a wrong checksum', Buffer.concat([int32(badChecksum.length + 4), badChecksum.subarray(4), int32(1)])],
    ['an unknown kind of section', frame(OP_MSG, int32(0), Buffer.from([9]))],
    ['no body', frame(OP_MSG, int32(0))],
    ['nothing but a header', frame(OP_MSG)],
    ['two bodies', frame(OP_MSG, int32(0), bodySection({ ping: 1 }), bodySection({ ping: 1 }))],
    ['a section longer than the message', frame(OP_MSG, int32(0), Buffer.from([1]), int32(100_000))],
    [
      'a document longer than the message',
      frame(OP_MSG, int32(0), Buffer.from([0]), int32(100_000), Buffer.alloc(20)),
    ],
    ['a string longer than its document', frame(OP_MSG, int32(0), Buffer.from([0]), longString)],
    ['a short string that is not UTF-8', rawMessage(element(2, 'a', text(Buffer.from([0xff]))))],
    ['a long string that is not UTF-8', rawMessage(element(2, 'a', text(Buffer.alloc(60, 0xc3))))],
    ['a surrogate on its own', rawMessage(element(2, 'a', text(Buffer.from('eda080', 'hex'))))],
    ['a field name that is not UTF-8', rawMessage(Buffer.concat([Buffer.from([0x0a, 0xff, 0])]))],
    [
      'code whose scope ends elsewhere',
      rawMessage(element(0x0f, 'a', int32(99), text(Buffer.from('x')), rawDocument())),
    ],
    [
      'binary data with two lengths that disagree',
      rawMessage(element(5, 'a', int32(9), Buffer.from([2]), int32(3), Buffer.from('abc'))),
    ],
    [
      'a value nested deeper than 200 levels',
      rawMessage(
        element(
          3,
          'a',
          Array.from({ length: 250 }).reduce<Buffer>(
            (inner) => rawDocument(element(3, 'a', inner)),
            rawDocument(),
          ),
        ),
      ),
    ],
    [
      'documents that come twice',
      frame(
        OP_MSG,
        int32(0),
        bodySection({ insert: 'twice', $db: 'wire' }),
        sequenceSection('documents', [{}]),
        sequenceSection('documents', [{}]),
      ),
    ],
    [
      'documents that the body has as well',
      frame(
        OP_MSG,
        int32(0),
        bodySection({ insert: 'twice', documents: [{}], $db: 'wire' }),
        sequenceSection('documents', [{}]),
      ),
    ],
    [
      'a query of old',
      frame(OP_QUERY, int32(0), Buffer.from('test.things\0'), int32(0, 0), BSON.serialize({})),
    ],
  ])('ends the connection for %s, says why, and serves the others on', async (_what, bytes) => {
    const socket = await open();
    const closed = once(socket, 'close');
    socket.resume();
    socket.write(bytes);
    await closed;
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/^connection \d+ closed: ./);
    await expect(client.db('wire').command({ ping: 1 })).resolves.toEqual({ ok: 1 });
  });

  it('listens on the loopback address alone', async () => {
    expect(server.uri).toContain('mongodb://127.0.0.1:');
    const elsewhere = connect(server.port, '::1');
    await expect(once(elsewhere, 'connect')).rejects.toThrow();
  });
});

describe('many and much', () => {
  it('serves 150 connections at once', async () => {
    const sockets = await Promise.all(Array.from({ length: 150 }, open));
    for (const socket of sockets) socket.write(message({ ping: 1, $db: 'admin' }));
    const replies = await Promise.all(sockets.map((socket) => readReplies(socket, 1)));
    expect(replies.every(([reply]) => reply?.body.ok === 1)).toBe(true);
    for (const socket of sockets) socket.destroy();
  });

  it('bounds a batch to 16 MB, and hands out all of it', async () => {
    const things = client.db('wire').collection<{ _id: number; text: string }>('large');
    const text = 'x'.repeat(1024 * 1024);
    for (let _id = 0; _id < 18; _id++) await things.insertOne({ _id, text });
    const first = await client.db('wire').command({ find: 'large', batchSize: 100 });
    expect((first.cursor as { firstBatch: unknown[] }).firstBatch).toHaveLength(15);
    expect(
      (
        await things
          .find()
          .map(({ _id }) => _id)
          .toArray()
      ).length,
    ).toBe(18);
    await things.drop();
  });

  it('waits for a client that is slow to read, and meanwhile serves the others', async () => {
    const slow = await open();
    slow.pause();
    await client
      .db('wire')
      .collection('slow')
      .insertOne({ text: 'x'.repeat(1024 * 1024) });
    for (let i = 0; i < 30; i++) slow.write(message({ find: 'slow', $db: 'wire' }));
    await expect(client.db('wire').command({ ping: 1 })).resolves.toEqual({ ok: 1 });
    const replies = await readReplies(slow, 30);
    expect(replies).toHaveLength(30);
    slow.destroy();
  });
});
