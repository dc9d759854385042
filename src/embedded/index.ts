export type { EmbeddedServer, EmbeddedServerOptions } from './server';
export { startEmbeddedServer } from './server';
