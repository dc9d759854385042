import type { Document, Value } from '../bson/values';
import { compareValues, keyOf } from '../bson/compare';
import { CommandError } from '../errors';
import { countMatching, holdsNull, indexedGroups } from '../query/counting';
import { select } from '../query/execution';
import { valuesAt } from '../query/path';
import { selectionOf } from '../query/selection';
import { runAggregate } from './aggregate';
import type { Command } from './request';
import { documentIn, namespaceIn, wholeNumberIn } from './request';

function windowed(total: number, skip: number, limit: number): number {
  const left = Math.max(0, total - skip);
  return limit > 0 ? Math.min(left, limit) : left;
}

export const count: Command = (request) => {
  const { engine, body, scope } = request;
  const namespace = namespaceIn(request);
  const filter = documentIn(body, 'query');
  const skip = wholeNumberIn(body, 'skip', 0);
  // A negative limit means the same as a positive one.
  const limit = Math.abs(Number(body.limit ?? 0));
  const found = engine.store.find(namespace);
  let total = 0;
  if (found?.kind === 'view') total = [...runAggregate(request, namespace, [{ $match: filter }])].length;
  else if (found) total = countMatching(selectionOf(found, { filter, hint: body.hint }, scope), filter);
  else scope.test(filter);
  return { n: windowed(total, skip, limit), ok: 1 };
};

export const distinct: Command = (request) => {
  const { engine, body, scope } = request;
  const namespace = namespaceIn(request);
  const { key } = body;
  if (typeof key !== 'string')
    throw new CommandError(14, "BSON field 'distinct.key' is the wrong type, expected type 'string'");
  const filter = documentIn(body, 'query');
  const found = engine.store.find(namespace);
  const distinctOf = (documents: Iterable<Document>): Value[] => {
    const values = new Map<string, Value>();
    for (const document of documents) {
      for (const value of valuesAt(document, key)) {
        const name = scope.strings && typeof value === 'string' ? undefined : keyOf(value);
        if (name === undefined) addCollated(value);
        else if (!values.has(name)) values.set(name, value);
      }
    }
    return [...values.values(), ...collated];
  };
  const collated: Value[] = [];
  const addCollated = (value: Value): void => {
    if (!collated.some((each) => compareValues(each, value, scope.strings) === 0)) collated.push(value);
  };
  if (found?.kind === 'view')
    return { values: distinctOf(runAggregate(request, namespace, [{ $match: filter }])), ok: 1 };
  if (!found) {
    scope.test(filter);
    return { values: [], ok: 1 };
  }
  const groups = scope.strings || body.hint !== undefined ? undefined : indexedGroups(found, filter, key);
  if (groups) {
    const present = groups.filter((group) => group.value !== null || holdsNull(group, key));
    return { values: present.map(({ first, value }) => valuesAt(first.document, key)[0] ?? value), ok: 1 };
  }
  const selection = selectionOf(found, { filter, hint: body.hint }, scope);
  return { values: distinctOf(documents(select(selection))).sort((a, b) => compareValues(a, b)), ok: 1 };
};

function* documents(records: Iterable<{ readonly document: Document }>): Generator<Document> {
  for (const { document } of records) yield document;
}
