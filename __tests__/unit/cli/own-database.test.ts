import { onSameServer } from '../../../src/cli/demo/own-database';

describe('a database of its own on the server that was configured', () => {
  it.each([
    ['mongodb://127.0.0.1:27017', 'mongodb://127.0.0.1:27017/demo'],
    ['mongodb://127.0.0.1:27017/', 'mongodb://127.0.0.1:27017/demo'],
    ['mongodb://a:1,b:2,c:3/work?replicaSet=rs', 'mongodb://a:1,b:2,c:3/demo?replicaSet=rs'],
    [
      'mongodb+srv://u:p%2F@cluster.example/work',
      'mongodb+srv://u:p%2F@cluster.example/demo?authSource=work',
    ],
    ['mongodb://u:p@h?tls=true', 'mongodb://u:p@h/demo?tls=true&authSource=admin'],
    ['mongodb://u:p@h/work?authSource=users', 'mongodb://u:p@h/demo?authSource=users'],
  ])('%s', (uri, expected) => {
    expect(onSameServer(uri, 'demo')).toBe(expected);
  });

  it('is refused for anything else', () => {
    expect(() => onSameServer('postgres://h/work', 'demo')).toThrow('connection string');
  });
});
