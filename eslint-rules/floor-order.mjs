import path from 'node:path';

/**
 * The house, from the top floor down. An import may only lead to a lower floor or stay inside its own room;
 * rooms on one floor know nothing of each other.
 */
const floors = [
  ['main.ts', 'cli'],
  ['composition.ts'],
  ['http'],
  ['operations'],
  ['verification', 'randomness'],
  ['worker', 'ingestion'],
  ['queue', 'lifecycle', 'stellar'],
  ['platform'],
];

/** Stand-ins for a real database and network: the only imports of them that production code may have. */
const standIns = new Set(['embedded', 'simnet']);
const mayImportStandIns = (file) => file.startsWith('cli/') || file.startsWith('platform/database/');

const floorOf = (room) => {
  const index = floors.findIndex((rooms) => rooms.includes(room));
  return index === -1 ? undefined : floors.length - index;
};

/** @type {import('eslint').Rule.RuleModule} */
export const floorOrder = {
  meta: { type: 'problem', docs: { description: 'imports only go down the house' }, schema: [] },
  create(context) {
    const source = path.join(context.cwd, 'src');
    const file = path.relative(source, context.filename).split(path.sep).join('/');
    if (file.startsWith('..')) return {};
    const room = file.split('/')[0];

    const check = (node) => {
      const specifier = node.source?.value;
      if (typeof specifier !== 'string' || !specifier.startsWith('.')) return;
      const target = path
        .relative(source, path.resolve(path.dirname(context.filename), specifier))
        .split(path.sep)
        .join('/');
      const targetRoom = target.split('/')[0];
      const targetName =
        floorOf(targetRoom) === undefined && floorOf(`${targetRoom}.ts`) ? `${targetRoom}.ts` : targetRoom;
      if (targetName === room) return;
      const report = (reason) => context.report({ node, message: `${file} imports ${target}: ${reason}` });

      if (standIns.has(targetName)) {
        if (!mayImportStandIns(file))
          report('the stand-ins are for the demo, the database picker and tests only');
        return;
      }
      const from = standIns.has(room) ? 2 : floorOf(room);
      const to = floorOf(targetName);
      if (from === undefined || to === undefined)
        report('it is on no floor of the house (eslint-rules/floor-order.mjs)');
      else if (to > from)
        report(`imports only go down, and ${targetName} is on floor ${to}, above floor ${from}`);
      else if (to === from && from !== 8) report('rooms on one floor know nothing of each other');
    };
    return {
      ImportDeclaration: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
      ImportExpression: check,
    };
  },
};
