import { equalValues } from '../bson/compare';
import { withIdFirst } from '../bson/field-order';
import type { Document, Value } from '../bson/values';
import { field, isDocument } from '../bson/values';
import type { Reshape } from '../aggregation/reshape';
import { compileReshape } from '../aggregation/reshape';
import { badValue, CommandError, failedToParse } from '../errors';
import { compileFilter } from '../query/filter';
import type { Predicate } from '../query/path';
import type { ProjectionContext } from '../query/projection';
import { positionOf } from '../query/positional';
import { formatValue } from '../storage/format-value';
import type { Modifier } from './modifiers';
import { MODIFIERS } from './modifiers';
import type { ElementChoice } from './paths';
import { concretePaths, requireValidPath, withChange } from './paths';
import { sameValue } from './same-value';

export interface UpdateContext {
  readonly projection: ProjectionContext;
  readonly now: Date;
}

export interface Updater {
  /** @returns the same object when nothing changes */
  apply(document: Document, inserts: boolean): Document;
}

interface Step {
  readonly path: string;
  readonly onInsertOnly: boolean;
  /** Where the change is made in a document, told before any change was. */
  places(document: Document, choice: ElementChoice): string[][];
  apply(document: Document, places: string[][]): Document;
}

function modifierStep(name: string, path: string, modifier: Modifier): Step {
  return {
    path,
    onInsertOnly: name === '$setOnInsert',
    places: (document, choice) => concretePaths(document, path, choice),
    apply: (document, places) =>
      places.reduce((each, parts) => withChange(each, parts, modifier.change, modifier.creates), document),
  };
}

function renameSteps(from: string, to: Value): Step[] {
  if (typeof to !== 'string')
    throw badValue(`The 'to' field for $rename must be a string: ${from}: ${formatValue(to)}`);
  requireValidPath(to);
  if (isWithin(from, to) || isWithin(to, from))
    throw badValue(`The source and target field for $rename must not be on the same path: ${from}: "${to}"`);
  for (const path of [from, to]) {
    if (path.split('.').some((part) => part.startsWith('$')))
      throw badValue(`The source and target field for $rename must not be dynamic: ${path}`);
  }
  return [
    {
      path: to,
      onInsertOnly: false,
      places: () => [],
      apply: (document) => {
        let value: Value = document;
        for (const part of from.split('.')) {
          if (Array.isArray(value)) throw badValue(`The source field cannot be an array element, '${from}'`);
          value = isDocument(value) ? field(value, part) : undefined;
        }
        if (value === undefined) return document;
        const moved = value;
        return withChange(
          withChange(document, from.split('.'), () => undefined, false),
          to.split('.'),
          () => moved,
          true,
        );
      },
    },
    { path: from, onInsertOnly: false, places: () => [], apply: (document) => document },
  ];
}

const isWithin = (path: string, other: string): boolean => path === other || path.startsWith(`${other}.`);

export function requireSameId(before: Value, after: Value): void {
  if (equalValues(before, after)) return;
  throw new CommandError(66, "Performing an update on the path '_id' would modify the immutable field '_id'");
}

function requireNoConflict(steps: readonly Step[]): void {
  // Sorted, a path is next to those that start with it, as long as '.' sorts before all else.
  const paths = steps.map(({ path }) => path.replaceAll('.', '\0')).sort();
  paths.forEach((path, i) => {
    const previous = paths[i - 1];
    if (previous !== undefined && isWithin(path.replaceAll('\0', '.'), previous.replaceAll('\0', '.'))) {
      const shown = path.replaceAll('\0', '.');
      throw new CommandError(
        40,
        `Updating the path '${shown}' would create a conflict at '${previous.replaceAll('\0', '.')}'`,
      );
    }
  });
}

function comparePaths(a: string, b: string): number {
  const [x, y] = [a.split('.'), b.split('.')];
  for (let i = 0; i < Math.min(x.length, y.length); i++) {
    const [p, q] = [x[i] ?? '', y[i] ?? ''];
    if (p === q) continue;
    if (/^\d+$/.test(p) && /^\d+$/.test(q)) return Number(p) - Number(q);
    return p < q ? -1 : 1;
  }
  return x.length - y.length;
}

function compileSteps(update: Document, context: UpdateContext): Step[] {
  const steps: Step[] = [];
  for (const [name, fields] of Object.entries(update)) {
    const make = MODIFIERS.get(name);
    if (!make && name !== '$rename') {
      throw failedToParse(
        `Unknown modifier: ${name}. Expected a valid update modifier or pipeline-style update specified as an array`,
      );
    }
    if (!isDocument(fields)) {
      throw failedToParse(
        `Modifiers operate on fields but we found type ${Array.isArray(fields) ? 'array' : typeof fields} instead. For example: {$mod: {<field>: ...}} not {${name}: ${formatValue(fields)}}`,
      );
    }
    for (const [path, argument] of Object.entries(fields)) {
      requireValidPath(path);
      if (make) {
        const modifier = make(path, argument, { filters: context.projection, now: context.now });
        steps.push(modifierStep(name, path, modifier));
      } else {
        steps.push(...renameSteps(path, argument));
      }
    }
  }
  requireNoConflict(steps);
  return steps.sort((a, b) => comparePaths(a.path, b.path));
}

function compileArrayFilters(
  arrayFilters: readonly Value[],
  update: Document,
  context: UpdateContext,
): Map<string, Predicate> {
  const tests = new Map<string, Predicate>();
  for (const filter of arrayFilters) {
    if (!isDocument(filter)) throw failedToParse('arrayFilters must be objects');
    const name = identifierIn(filter);
    if (name === undefined)
      throw failedToParse('Cannot use an expression without a top-level field name in arrayFilters');
    if (!/^[a-z][a-zA-Z0-9]*$/.test(name))
      throw badValue(
        `Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '${name}'`,
      );
    if (tests.has(name))
      throw failedToParse(`Found multiple array filters with the same top-level field name ${name}`);
    const test = compileFilter(filter, context.projection);
    tests.set(name, (value) => test({ [name]: value }));
  }
  const paths = Object.values(update).flatMap((fields) => (isDocument(fields) ? Object.keys(fields) : []));
  for (const name of tests.keys()) {
    if (!paths.some((path) => path.split('.').includes(`$[${name}]`))) {
      throw failedToParse(
        `The array filter for identifier '${name}' was not used in the update ${formatValue(update)}`,
      );
    }
  }
  return tests;
}

function identifierIn(filter: Document): string | undefined {
  for (const [name, value] of Object.entries(filter)) {
    if (!name.startsWith('$')) return name.split('.')[0];
    const nested = Array.isArray(value) ? value.find(isDocument) : undefined;
    if (nested) return identifierIn(nested);
  }
  return undefined;
}

function operatorUpdater(update: Document, arrayFilters: readonly Value[], context: UpdateContext): Updater {
  const steps = compileSteps(update, context);
  const { filter = {} } = context.projection;
  const choice: ElementChoice = {
    matched: (path, array) => positionOf(filter, path, array, context.projection),
    named: compileArrayFilters(arrayFilters, update, context),
  };
  return {
    apply: (document, inserts) => {
      const wanted = steps.filter(({ onInsertOnly }) => inserts || !onInsertOnly);
      // Elements are chosen by what they were, not by what an earlier step made of them.
      const places = wanted.map((step) => step.places(document, choice));
      const result = wanted.reduce((each, step, i) => step.apply(each, places[i] ?? []), document);
      const id = field(document, '_id');
      if (!inserts || id !== undefined) requireSameId(id, field(result, '_id'));
      return result;
    },
  };
}

/** `_id` stays, and stays first, whether or not a replacement names it. */
function keepId(before: Document, after: Document, inserts: boolean): Document {
  const id = field(before, '_id');
  if (id === undefined) return after;
  const newId = field(after, '_id');
  if (newId !== undefined && !equalValues(id, newId)) {
    throw new CommandError(
      66,
      `After applying the update, the (immutable) field '_id' was found to have been altered to _id: ${formatValue(newId)}`,
    );
  }
  if (inserts && newId !== undefined) return after;
  return withIdFirst(after, id);
}

function replacementUpdater(replacement: Document): Updater {
  return {
    apply: (document, inserts) => {
      const result = keepId(document, replacement, inserts);
      return sameValue(document, result) ? document : result;
    },
  };
}

function pipelineUpdater(stages: readonly Value[], context: UpdateContext): Updater {
  const reshapes = stages.map((stage): Reshape => {
    const [entry] = isDocument(stage) ? Object.entries(stage) : [];
    if (!entry || Object.keys(stage as Document).length !== 1) {
      throw new CommandError(40323, 'A pipeline stage specification object must contain exactly one field.');
    }
    const reshape = compileReshape(entry[0], entry[1], context.projection);
    if (!reshape) throw new CommandError(72, `${entry[0]} is not allowed to be used within an update`);
    return reshape;
  });
  return {
    apply: (document, inserts) => {
      const result = keepId(
        document,
        reshapes.reduce((each, reshape) => reshape(each), document),
        inserts,
      );
      return sameValue(document, result) ? document : result;
    },
  };
}

/** @throws CommandError for an update that no document could take */
export function compileUpdate(
  update: Value,
  arrayFilters: readonly Value[],
  context: UpdateContext,
): Updater {
  if (Array.isArray(update)) {
    if (arrayFilters.length > 0)
      throw failedToParse('arrayFilters may not be specified for pipeline-syle updates');
    return pipelineUpdater(update, context);
  }
  if (!isDocument(update)) throw failedToParse('Update argument must be either an object or an array');
  if (isReplacement(update)) {
    if (arrayFilters.length > 0)
      throw failedToParse('Cannot specify arrayFilters in a replacement-style update');
    return replacementUpdater(update);
  }
  return operatorUpdater(update, arrayFilters, context);
}

export function isReplacement(update: Value): update is Document {
  return isDocument(update) && !Object.keys(update)[0]?.startsWith('$');
}
