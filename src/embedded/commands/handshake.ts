import { arch, platform } from 'node:os';
import { CommandError } from '../errors';
import { MAX_MESSAGE_BYTES } from '../wire/framing';
import type { Command } from './request';
import { MAX_BATCH_SIZE } from './writes';

/** That of MongoDB 7.0. */
const MAX_WIRE_VERSION = 21;
const VERSION = '7.0.0';

export const hello: Command = ({ name, scope, connectionId }) => ({
  // No replica set fields: drivers take it for a standalone, and so try neither transactions nor retryable writes.
  ...(name === 'hello' ? { isWritablePrimary: true } : { ismaster: true }),
  helloOk: true,
  maxBsonObjectSize: 16 * 1024 * 1024,
  maxMessageSizeBytes: MAX_MESSAGE_BYTES,
  maxWriteBatchSize: MAX_BATCH_SIZE,
  localTime: scope.now,
  logicalSessionTimeoutMinutes: 30,
  connectionId,
  minWireVersion: 0,
  maxWireVersion: MAX_WIRE_VERSION,
  readOnly: false,
  ok: 1,
});

export const buildInfo: Command = () => ({
  version: VERSION,
  gitVersion: 'sorolane-embedded',
  modules: ['embedded'],
  sysInfo: 'in memory, for tests and trial',
  versionArray: [7, 0, 0, 0],
  javascriptEngine: 'none',
  bits: 64,
  debug: false,
  maxBsonObjectSize: 16 * 1024 * 1024,
  storageEngines: ['embedded'],
  ok: 1,
});

export const hostInfo: Command = ({ scope }) => ({
  system: { currentTime: scope.now, hostname: '127.0.0.1', cpuArch: arch() },
  os: { type: platform() },
  ok: 1,
});

export const connectionStatus: Command = () => ({
  authInfo: { authenticatedUsers: [], authenticatedUserRoles: [] },
  ok: 1,
});

export const whatsMyUri: Command = () => ({ you: '127.0.0.1', ok: 1 });

export const getParameter: Command = ({ body }) => {
  const known = {
    featureCompatibilityVersion: { version: '7.0' },
    enableTestCommands: true,
    authenticationMechanisms: [],
  };
  if (body.getParameter === '*' || body.allParameters === true) return { ...known, ok: 1 };
  const asked = Object.entries(known).filter(([name]) => body[name] !== undefined);
  if (asked.length === 0) throw new CommandError(72, 'no option found to get');
  return { ...Object.fromEntries(asked), ok: 1 };
};

export const getLog: Command = ({ body }) =>
  body.getLog === '*'
    ? { names: ['global', 'startupWarnings'], ok: 1 }
    : { totalLinesWritten: 0, log: [], ok: 1 };

export const getCmdLineOpts: Command = () => ({ argv: [], parsed: {}, ok: 1 });

export const acknowledge: Command = () => ({ ok: 1 });

export const configureFailPoint: Command = ({ engine, body }) => {
  engine.failPoints.configure(body);
  return { ok: 1 };
};
