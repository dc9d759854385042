import { setTimeout as delay } from 'node:timers/promises';
import type { Socket } from 'node:net';
import type { Dispatcher } from '../dispatcher';
import { FrameReader, ProtocolError } from './framing';
import type { IncomingMessage } from './messages';
import { encodeReply, parseMessage } from './messages';

export interface ConnectionLogger {
  info(message: string): void;
  warn(message: string): void;
}

/** Commands that wait on one connection; beyond that its bytes are left in the network's buffers. */
const MAX_PENDING = 64;

/** One client's connection: its commands are carried out in the order they came. */
export class Connection {
  readonly #frames = new FrameReader();
  readonly #pending: IncomingMessage[] = [];
  #busy = false;
  #appName: string | undefined;

  constructor(
    readonly id: number,
    readonly socket: Socket,
    readonly dispatcher: Dispatcher,
    readonly logger: ConnectionLogger,
  ) {
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('drain', () => this.#continue());
    // A client that goes away is no error of ours; 'close' follows.
    socket.on('error', () => socket.destroy());
  }

  #receive(chunk: Buffer): void {
    try {
      this.#frames.push(chunk);
      for (let bytes = this.#frames.next(); bytes; bytes = this.#frames.next()) {
        this.#pending.push(parseMessage(bytes));
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.logger.warn(`connection ${this.id} closed: ${error.message}`);
      this.socket.destroy();
      return;
    }
    if (this.#pending.length > MAX_PENDING) this.socket.pause();
    this.#continue();
  }

  /** Carries out what waits, unless a command is under way or the client doesn't read its replies. */
  #continue(): void {
    while (!this.#busy && !this.socket.destroyed && !this.socket.writableNeedDrain) {
      const message = this.#pending.shift();
      if (!message) break;
      this.#carryOut(message);
    }
    if (this.#pending.length <= MAX_PENDING && this.socket.isPaused() && !this.socket.writableNeedDrain) {
      this.socket.resume();
    }
    if (this.socket.writableNeedDrain) this.socket.pause();
  }

  #carryOut(message: IncomingMessage): void {
    this.#appName ??= this.dispatcher.appNameIn(message.body);
    const failure = this.dispatcher.failureFor(message.body, this.#appName);
    if (!failure) {
      this.#reply(message, this.dispatcher.execute(message.body, this.id));
      return;
    }
    this.#busy = true;
    void delay(failure.blockMs).then(() => {
      this.#busy = false;
      if (failure.closeConnection) this.socket.destroy();
      else this.#reply(message, this.dispatcher.executeFailing(message.body, this.id, failure));
      this.#continue();
    });
  }

  #reply(message: IncomingMessage, reply: ReturnType<Dispatcher['execute']>): void {
    if (message.unacknowledged || this.socket.destroyed) return;
    this.socket.write(encodeReply(message, reply));
  }
}
