const FORM = /^(?<server>mongodb(?:\+srv)?:\/\/[^/?]+)(?:\/(?<database>[^?]*))?(?:\?(?<options>.*))?$/;

/**
 * The connection string for another database on the same server. Not by `URL`, which knows one host only where a replica set
 * names several; and whoever logs in still does so where the string said before.
 * @throws Error when it is no connection string.
 */
export function onSameServer(uri: string, database: string): string {
  const { server, database: before = '', options = '' } = FORM.exec(uri)?.groups ?? {};
  if (server === undefined) throw new Error('expected a mongodb:// or mongodb+srv:// connection string');
  const parameters = options === '' ? [] : [options];
  if (server.includes('@') && !/(?:^|&)(?:authSource|authMechanism)=/i.test(options))
    parameters.push(`authSource=${before === '' ? 'admin' : before}`);
  return `${server}/${database}${parameters.length === 0 ? '' : `?${parameters.join('&')}`}`;
}
