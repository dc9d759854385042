import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

interface Link {
  client: Socket;
  server: Socket;
  /** The next answer is thrown away and the connection with it. */
  swallowing: boolean;
}

/** A TCP proxy before the database that misbehaves on demand. */
export class FaultyProxy {
  readonly #links = new Set<Link>();
  #server: Server | undefined;
  #down = false;
  #stalled = false;
  #loseReplyTo: { command: string; done: () => void } | undefined;

  private constructor(private readonly target: URL) {}

  static async before(uri: string): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(new URL(uri));
    await proxy.#listen(0);
    return proxy;
  }

  /** The same database, through the proxy. Failures show up quickly. */
  get uri(): string {
    const url = new URL(this.target);
    const { port } = this.#server!.address() as AddressInfo;
    url.hostname = '127.0.0.1';
    url.port = String(port);
    url.searchParams.set('directConnection', 'true');
    url.searchParams.set('serverSelectionTimeoutMS', '1200');
    url.searchParams.set('connectTimeoutMS', '300');
    url.searchParams.set('heartbeatFrequencyMS', '500');
    return url.toString();
  }

  /** Cuts every connection and refuses new ones until `up`. */
  down(): void {
    this.#down = true;
    for (const link of this.#links) this.#cut(link);
  }

  up(): void {
    this.#down = false;
  }

  /** Nothing passes any more, in either direction, and nothing is closed. */
  stall(): void {
    this.#stalled = true;
  }

  /** The next such command reaches the database; its reply does not reach the client, whose connection breaks instead. */
  loseReplyTo(command: string): Promise<void> {
    return new Promise((resolve) => {
      this.#loseReplyTo = { command, done: resolve };
    });
  }

  async close(): Promise<void> {
    for (const link of this.#links) this.#cut(link);
    this.#server!.close();
    await once(this.#server!, 'close');
  }

  async #listen(port: number): Promise<void> {
    this.#server = createServer((client) => this.#accept(client)).listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  #accept(client: Socket): void {
    if (this.#down) {
      client.destroy();
      return;
    }
    const server = connect(Number(this.target.port), this.target.hostname);
    const link: Link = { client, server, swallowing: false };
    this.#links.add(link);
    client.on('data', (data) => {
      if (this.#stalled) return;
      const wanted = this.#loseReplyTo;
      if (wanted !== undefined && data.includes(Buffer.from(`${wanted.command}\0`))) {
        this.#loseReplyTo = undefined;
        link.swallowing = true;
        server.once('data', () => wanted.done());
      }
      server.write(data);
    });
    server.on('data', (data) => {
      if (this.#stalled) return;
      if (link.swallowing) this.#cut(link);
      else client.write(data);
    });
    for (const socket of [client, server]) {
      socket.on('error', () => this.#cut(link));
      socket.on('close', () => this.#cut(link));
    }
  }

  #cut(link: Link): void {
    this.#links.delete(link);
    link.client.destroy();
    link.server.destroy();
  }
}
