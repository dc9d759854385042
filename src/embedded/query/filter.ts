import { BSONRegExp } from 'mongodb';
import type { StringOrder } from '../bson/compare';
import type { Document, Value } from '../bson/values';
import { isDocument } from '../bson/values';
import { badValue } from '../errors';
import { compileJsonSchema } from './json-schema';
import { compileFieldOperator, equalTo, matchesPattern } from './operators';
import { anyAt } from './path';

export type DocumentTest = (document: Document) => boolean;

/** What a filter depends on besides the document. */
export interface FilterContext {
  /** Makes a test of an aggregation expression; `$$NOW` in it is the same for a whole command. */
  readonly expression: (expression: Value) => DocumentTest;
  /** How strings compare, when not by their bytes. */
  readonly strings?: StringOrder;
}

const pass: DocumentTest = () => true;

export function allOf(tests: readonly DocumentTest[]): DocumentTest {
  const [first, second, third] = tests;
  if (!first) return pass;
  if (!second) return first;
  if (!third) return (document) => first(document) && second(document);
  return (document) => tests.every((test) => test(document));
}

/** True for `{$gt: 1}` and the like; a document with other names is a value to be equal to, and so is a DBRef. */
export function isOperatorDocument(value: Value): value is Document {
  if (!isDocument(value)) return false;
  const [first] = Object.keys(value);
  return first?.startsWith('$') === true && first !== '$ref' && first !== '$id' && first !== '$db';
}

function compileClauses(name: string, clauses: Value, context: FilterContext): DocumentTest[] {
  if (!Array.isArray(clauses)) throw badValue(`${name} argument must be an array`);
  if (clauses.length === 0) throw badValue(`${name} argument must be a non-empty array`);
  return clauses.map((clause) => {
    if (!isDocument(clause)) throw badValue(`${name} argument's entries must be objects`);
    return compileFilter(clause, context);
  });
}

function compileTopLevel(name: string, argument: Value, context: FilterContext): DocumentTest {
  switch (name) {
    case '$and':
      return allOf(compileClauses(name, argument, context));
    case '$or': {
      const tests = compileClauses(name, argument, context);
      return (document) => tests.some((test) => test(document));
    }
    case '$nor': {
      const tests = compileClauses(name, argument, context);
      return (document) => !tests.some((test) => test(document));
    }
    case '$expr':
      return context.expression(argument);
    case '$comment':
      return pass;
    case '$jsonSchema': {
      if (!isDocument(argument)) throw badValue('$jsonSchema must be an object');
      return compileJsonSchema(argument);
    }
    case '$sampleRate':
      return () => Math.random() < Number(argument);
    case '$alwaysTrue':
      return pass;
    case '$alwaysFalse':
      return () => false;
    case '$where':
    case '$text':
      throw badValue(`${name} is not supported here`);
    default:
      throw badValue(
        `unknown top level operator: ${name}. If you have a field name that starts with a '$' symbol, consider using $getField or $setField.`,
      );
  }
}

function compileOperators(path: string, operators: Document, context: FilterContext): DocumentTest {
  const tests: DocumentTest[] = [];
  for (const [name, argument] of Object.entries(operators)) {
    if (name === '$options') {
      if (!('$regex' in operators)) throw badValue('$options needs a $regex');
    } else if (name === '$not') {
      tests.push(compileNegation(path, argument, context));
    } else {
      tests.push(compileFieldOperator(path, name, argument, operators, context));
    }
  }
  return allOf(tests);
}

function compileNegation(path: string, argument: Value, context: FilterContext): DocumentTest {
  let test: DocumentTest;
  if (argument instanceof BSONRegExp) {
    test = anyAt(path, 'expand', matchesPattern(argument));
  } else if (isOperatorDocument(argument)) {
    test = compileOperators(path, argument, context);
  } else {
    throw badValue('$not needs a regex or a document');
  }
  return (document) => !test(document);
}

/** The test for the value beside one field name: operators, a pattern, or a value to be equal to. */
export function compileField(path: string, value: Value, context: FilterContext): DocumentTest {
  if (isOperatorDocument(value)) return compileOperators(path, value, context);
  if (value instanceof BSONRegExp) {
    const matches = matchesPattern(value);
    const equals = equalTo(value, context.strings);
    return anyAt(path, 'expand', (each) => matches(each) || equals(each));
  }
  return anyAt(path, 'expand', equalTo(value, context.strings));
}

/**
 * Turns a filter into a test.
 * @throws CommandError when it isn't one
 */
export function compileFilter(filter: Document, context: FilterContext): DocumentTest {
  return allOf(
    Object.entries(filter).map(([name, value]) =>
      name.startsWith('$') ? compileTopLevel(name, value, context) : compileField(name, value, context),
    ),
  );
}
