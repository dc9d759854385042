import { compareValues, equalValues } from '../bson/compare';
import type { Document, Value } from '../bson/values';
import { bsonTypeName, field, isDocument, isNumeric } from '../bson/values';
import { failedToParse } from '../errors';
import type { DocumentTest } from './filter';
import { toRegExp } from './operators';

type ValueTest = (value: Value) => boolean;

const JSON_TYPES: Readonly<Record<string, readonly string[]>> = {
  object: ['object'],
  array: ['array'],
  string: ['string'],
  boolean: ['bool'],
  null: ['null'],
  number: ['int', 'long', 'double', 'decimal'],
};

const numeric = JSON_TYPES.number ?? [];

function listOf(value: Value): Value[] {
  return Array.isArray(value) ? value : [value];
}

function textOf(value: Value): string {
  if (typeof value === 'string') return value;
  throw failedToParse('a $jsonSchema keyword must be a string');
}

function schemaOf(value: Value, keyword: string): Document {
  if (!isDocument(value)) throw failedToParse(`$jsonSchema keyword '${keyword}' must be an object`);
  return value;
}

function propertiesTest(properties: Document): ValueTest {
  const tests = Object.entries(properties).map(
    ([name, schema]) => [name, compileSchema(schemaOf(schema, name))] as const,
  );
  return (value) =>
    !isDocument(value) ||
    tests.every(([name, test]) => {
      const each = field(value, name);
      return each === undefined || test(each);
    });
}

function additionalTest(argument: Value, schema: Document): ValueTest {
  const known = new Set(isDocument(schema.properties) ? Object.keys(schema.properties) : []);
  const patterns = Object.keys(isDocument(schema.patternProperties) ? schema.patternProperties : {}).map(
    (each) => toRegExp(each, ''),
  );
  const test = isDocument(argument) ? compileSchema(argument) : () => argument !== false;
  return (value) =>
    !isDocument(value) ||
    Object.entries(value).every(
      ([name, each]) => known.has(name) || patterns.some((pattern) => pattern.test(name)) || test(each),
    );
}

function sizeTest(keyword: string, argument: Value): ValueTest {
  const limit = Number(argument);
  const within = (size: number): boolean => (keyword.startsWith('min') ? size >= limit : size <= limit);
  if (keyword.endsWith('Length'))
    return (value) => typeof value !== 'string' || within(Array.from(value).length);
  if (keyword.endsWith('Items')) return (value) => !Array.isArray(value) || within(value.length);
  return (value) => !isDocument(value) || within(Object.keys(value).length);
}

function compileKeyword(keyword: string, argument: Value, schema: Document): ValueTest {
  switch (keyword) {
    case 'bsonType': {
      const names = listOf(argument).flatMap((name) => (name === 'number' ? numeric : [textOf(name)]));
      return (value) => names.includes(bsonTypeName(value));
    }
    case 'type': {
      const names = listOf(argument).flatMap((name) => JSON_TYPES[textOf(name)] ?? []);
      return (value) => names.includes(bsonTypeName(value));
    }
    case 'required': {
      const names = listOf(argument).map(textOf);
      return (value) => !isDocument(value) || names.every((name) => field(value, name) !== undefined);
    }
    case 'properties':
      return propertiesTest(schemaOf(argument, keyword));
    case 'additionalProperties':
      return additionalTest(argument, schema);
    case 'patternProperties': {
      const tests = Object.entries(schemaOf(argument, keyword)).map(
        ([pattern, each]) => [toRegExp(pattern, ''), compileSchema(schemaOf(each, keyword))] as const,
      );
      return (value) =>
        !isDocument(value) ||
        Object.entries(value).every(([name, each]) =>
          tests.every(([pattern, test]) => !pattern.test(name) || test(each)),
        );
    }
    case 'enum':
      return (value) => listOf(argument).some((each) => equalValues(each, value));
    case 'minimum':
      return (value) =>
        !isNumeric(value) || compareValues(value, argument) >= (schema.exclusiveMinimum === true ? 1 : 0);
    case 'maximum':
      return (value) =>
        !isNumeric(value) || compareValues(value, argument) <= (schema.exclusiveMaximum === true ? -1 : 0);
    case 'pattern': {
      const pattern = toRegExp(textOf(argument), '');
      return (value) => typeof value !== 'string' || pattern.test(value);
    }
    case 'minLength':
    case 'maxLength':
    case 'minItems':
    case 'maxItems':
    case 'minProperties':
    case 'maxProperties':
      return sizeTest(keyword, argument);
    case 'items': {
      const test = compileSchema(schemaOf(argument, keyword));
      return (value) => !Array.isArray(value) || value.every(test);
    }
    case 'uniqueItems':
      return (value) =>
        argument !== true ||
        !Array.isArray(value) ||
        value.every((each, i) => value.findIndex((other) => equalValues(each, other)) === i);
    case 'allOf':
    case 'anyOf':
    case 'oneOf': {
      const tests = listOf(argument).map((each) => compileSchema(schemaOf(each, keyword)));
      return (value) => {
        const passed = tests.filter((test) => test(value)).length;
        return keyword === 'allOf'
          ? passed === tests.length
          : keyword === 'anyOf'
            ? passed > 0
            : passed === 1;
      };
    }
    case 'not': {
      const test = compileSchema(schemaOf(argument, keyword));
      return (value) => !test(value);
    }
    case 'title':
    case 'description':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      return () => true;
    default:
      throw failedToParse(`Unknown $jsonSchema keyword: ${keyword}`);
  }
}

function compileSchema(schema: Document): ValueTest {
  const tests = Object.entries(schema).map(([keyword, argument]) =>
    compileKeyword(keyword, argument, schema),
  );
  return (value) => tests.every((test) => test(value));
}

export function compileJsonSchema(schema: Document): DocumentTest {
  return compileSchema(schema);
}
