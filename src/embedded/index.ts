export interface EmbeddedServer {
  uri: string;
  port: number;
  close(): Promise<void>;
}

export function startEmbeddedServer(_options: { port?: number }): Promise<EmbeddedServer> {
  return Promise.reject(new Error('the embedded engine is being built'));
}
