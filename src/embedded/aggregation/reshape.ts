import type { Document, Value } from '../bson/values';
import { bsonTypeName, isDocument } from '../bson/values';
import { CommandError } from '../errors';
import type { ProjectionContext } from '../query/projection';
import { compileProjection, withValueAt } from '../query/projection';

export type Reshape = (document: Document) => Document;

/** The stages that turn one document into one other: all of a pipeline update, and part of an aggregation. */
const RESHAPERS: Readonly<Record<string, (argument: Value, context: ProjectionContext) => Reshape>> = {
  $addFields: addFields,
  $set: addFields,
  $unset: unset,
  $project: project,
  $replaceRoot: (argument, context) => {
    if (!isDocument(argument))
      throw new CommandError(40229, 'expected an object as specification for $replaceRoot stage');
    return replaceWith(argument.newRoot, context);
  },
  $replaceWith: replaceWith,
};

function flatten(specification: Document, prefix = ''): [string, Value][] {
  return Object.entries(specification).flatMap(([name, value]): [string, Value][] => {
    const nested =
      isDocument(value) && Object.keys(value).length > 0 && !Object.keys(value)[0]?.startsWith('$');
    return nested ? flatten(value, `${prefix}${name}.`) : [[prefix + name, value]];
  });
}

function addFields(argument: Value, context: ProjectionContext): Reshape {
  if (!isDocument(argument) || Object.keys(argument).length === 0) {
    throw new CommandError(40272, '$addFields specification stage must be an object');
  }
  const fields = flatten(argument).map(([path, expression]) => ({
    parts: path.split('.'),
    compute: context.evaluator(expression),
  }));
  return (document) => {
    let result = document;
    for (const { parts, compute } of fields) result = withValueAt(result, parts, compute(document));
    return result;
  };
}

function unset(argument: Value, context: ProjectionContext): Reshape {
  const paths = Array.isArray(argument) ? argument : [argument];
  if (paths.length === 0 || !paths.every((path) => typeof path === 'string')) {
    throw new CommandError(
      31002,
      '$unset specification must be a string or an array containing only string values',
    );
  }
  return compileProjection(Object.fromEntries(paths.map((path) => [path, false])), context);
}

function project(argument: Value, context: ProjectionContext): Reshape {
  if (!isDocument(argument)) throw new CommandError(15969, '$project specification must be an object');
  if (Object.keys(argument).length === 0)
    throw new CommandError(
      51272,
      'Invalid $project :: caused by :: projection specification must have at least one field',
    );
  return compileProjection(argument, { ...context, filter: undefined });
}

function replaceWith(argument: Value, context: ProjectionContext): Reshape {
  const compute = context.evaluator(argument);
  return (document) => {
    const root = compute(document);
    if (isDocument(root)) return root;
    throw new CommandError(
      40228,
      `'newRoot' expression must evaluate to an object, but resulting value was of type: ${bsonTypeName(root)}`,
    );
  };
}

/** @returns undefined when the stage is another one */
export function compileReshape(
  name: string,
  argument: Value,
  context: ProjectionContext,
): Reshape | undefined {
  return RESHAPERS[name]?.(argument, context);
}
