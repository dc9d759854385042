import type { Document, Value } from '../bson/values';
import { putField, withIdFirst } from '../bson/field-order';
import { at, FIELD_ORDER, field, isDocument, isNumeric, setField, toNumber } from '../bson/values';
import { badValue, CommandError } from '../errors';
import type { FilterContext } from './filter';
import { elementTest } from './operators';
import { positionOf } from './positional';

export type Project = (document: Document) => Document;

type Compute = (document: Document) => Value;

/** What becomes of one field. */
type Rule =
  | { readonly kind: 'keep' }
  | { readonly kind: 'drop' }
  | { readonly kind: 'change'; readonly change: (value: Value) => Value }
  | { readonly kind: 'tree'; readonly rules: Rules };

type Rules = Map<string, Rule>;

export interface ProjectionContext extends FilterContext {
  readonly evaluator: (expression: Value) => Compute;
  /** Set for `find`, which has `$slice`, `$elemMatch` and `$` of its own. */
  readonly filter?: Document | undefined;
}

interface Parsed {
  readonly rules: Rules;
  readonly computed: { readonly path: string; readonly compute: Compute }[];
  includes: boolean;
  excludes: boolean;
  idKept: boolean | undefined;
}

function addRule(rules: Rules, path: string, rule: Rule): void {
  const [first = '', ...rest] = path.split('.');
  if (rest.length === 0) {
    if (rules.get(first)?.kind === 'tree') throw new CommandError(31250, `Path collision at ${path}`);
    rules.set(first, rule);
    return;
  }
  let tree = rules.get(first);
  if (!tree) rules.set(first, (tree = { kind: 'tree', rules: new Map() }));
  if (tree.kind !== 'tree')
    throw new CommandError(31249, `Path collision at ${path} remaining portion ${rest.join('.')}`);
  addRule(tree.rules, rest.join('.'), rule);
}

function slice(argument: Value): (value: Value) => Value {
  const [first, second] = Array.isArray(argument) ? argument : [argument];
  const skip = isNumeric(first) ? toNumber(first) : 0;
  return (value) => {
    if (!Array.isArray(value)) return value;
    if (second === undefined) return skip < 0 ? value.slice(skip) : value.slice(0, skip);
    const start = skip < 0 ? Math.max(0, value.length + skip) : skip;
    return value.slice(start, start + Number(second));
  };
}

const isFindSlice = (argument: Value): boolean =>
  isNumeric(argument) || (Array.isArray(argument) && argument.length === 2 && isNumeric(argument[0]));

class ProjectionParser {
  readonly parsed: Parsed = {
    rules: new Map(),
    computed: [],
    includes: false,
    excludes: false,
    idKept: undefined,
  };

  constructor(readonly context: ProjectionContext) {}

  parse(specification: Document, prefix = ''): void {
    for (const [name, value] of Object.entries(specification)) this.#parseField(prefix + name, value);
  }

  #parseField(path: string, value: Value): void {
    if (path === '' || path.split('.').includes(''))
      throw new CommandError(40352, 'FieldPath cannot be constructed with empty string');
    if (isNumeric(value) || typeof value === 'boolean') {
      this.#parseFlag(path, typeof value === 'boolean' ? value : toNumber(value) !== 0);
    } else if (
      isDocument(value) &&
      !Object.keys(value)[0]?.startsWith('$') &&
      Object.keys(value).length > 0
    ) {
      this.parse(value, `${path}.`);
    } else if (!this.context.filter || !isDocument(value) || !this.#parseFindOperator(path, value)) {
      this.parsed.includes = true;
      this.parsed.computed.push({ path, compute: this.context.evaluator(value) });
      addRule(this.parsed.rules, path, { kind: 'drop' });
    }
  }

  #parseFlag(path: string, kept: boolean): void {
    if (path === '_id') {
      this.parsed.idKept = kept;
      return;
    }
    if (path.endsWith('.$') && this.context.filter) {
      this.#parsePositional(path.slice(0, -2));
      return;
    }
    if (kept ? this.parsed.excludes : this.parsed.includes) {
      throw kept
        ? new CommandError(31253, `Cannot do inclusion on field ${path} in exclusion projection`)
        : new CommandError(31254, `Cannot do exclusion on field ${path} in inclusion projection`);
    }
    if (kept) this.parsed.includes = true;
    else this.parsed.excludes = true;
    addRule(this.parsed.rules, path, { kind: kept ? 'keep' : 'drop' });
  }

  #parsePositional(path: string): void {
    const { filter = {} } = this.context;
    this.parsed.includes = true;
    addRule(this.parsed.rules, path, {
      kind: 'change',
      change: (value) => {
        if (!Array.isArray(value)) return value;
        const position = positionOf(filter, path, value, this.context);
        if (position === undefined) {
          throw new CommandError(
            51246,
            "Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array",
          );
        }
        return [value[position]];
      },
    });
  }

  /** @returns false when it is an expression */
  #parseFindOperator(path: string, value: Document): boolean {
    if ('$elemMatch' in value) {
      const test = elementTest(value.$elemMatch, this.context);
      this.parsed.includes = true;
      addRule(this.parsed.rules, path, {
        kind: 'change',
        change: (each) => {
          const found = Array.isArray(each) ? each.find(test) : undefined;
          return found === undefined ? undefined : [found];
        },
      });
      return true;
    }
    if ('$slice' in value && isFindSlice(value.$slice)) {
      addRule(this.parsed.rules, path, { kind: 'change', change: slice(value.$slice) });
      return true;
    }
    if ('$meta' in value) throw badValue('$meta projections are not supported here');
    return false;
  }
}

function applyRule(rule: Rule, value: Value, inclusive: boolean): Value {
  switch (rule.kind) {
    case 'keep':
      return value;
    case 'drop':
      return undefined;
    case 'change':
      return rule.change(value);
    case 'tree':
      if (isDocument(value)) return applyRules(value, rule.rules, inclusive);
      if (!Array.isArray(value)) return inclusive ? undefined : value;
      return value.flatMap((each) => {
        const kept = applyRule(rule, each, inclusive);
        return kept === undefined ? [] : [kept];
      });
  }
}

function applyRules(part: Document, rules: Rules, inclusive: boolean): Document {
  const result: Document = {};
  for (const name of Object.keys(part)) {
    const rule = rules.get(name);
    const kept = rule ? applyRule(rule, part[name], inclusive) : inclusive ? undefined : part[name];
    if (kept !== undefined) setField(result, name, kept);
  }
  const order = part[FIELD_ORDER];
  if (order) result[FIELD_ORDER] = order;
  return result;
}

/** A copy in which what a path leads to is another value, missing for undefined; arrays on the way have it in each element. */
export function withValueAt(document: Document, parts: readonly string[], value: Value): Document {
  const name = at(parts, 0);
  const copy = { ...document };
  if (parts.length === 1) {
    if (value === undefined) Reflect.deleteProperty(copy, name);
    else putField(copy, name, value);
    return copy;
  }
  const inner = (each: Value): Value => {
    if (Array.isArray(each)) return each.map(inner);
    return withValueAt(isDocument(each) ? each : {}, parts.slice(1), value);
  };
  const current = field(document, name);
  if (current === undefined && value === undefined) return document;
  putField(copy, name, inner(current));
  return copy;
}

/** @throws CommandError for one that mixes what is kept with what is left out */
export function compileProjection(specification: Document, context: ProjectionContext): Project {
  const parser = new ProjectionParser(context);
  parser.parse(specification);
  const { rules, computed, includes, excludes, idKept } = parser.parsed;
  if (includes && excludes) {
    throw new CommandError(31254, 'Cannot do exclusion on a field in inclusion projection');
  }
  const inclusive = includes || (!excludes && idKept === true && !hasChanges(rules));
  if (!rules.has('_id') && (inclusive || idKept === false)) {
    rules.set('_id', { kind: idKept === false ? 'drop' : 'keep' });
  }
  return (document) => {
    let result = applyRules(document, rules, inclusive);
    for (const { path, compute } of computed) {
      const value = compute(document);
      if (path === '_id' && value !== undefined) result = withIdFirst(result, value);
      else result = withValueAt(result, path.split('.'), value);
    }
    return result;
  };
}

function hasChanges(rules: Rules): boolean {
  return [...rules.values()].some(({ kind }) => kind === 'change' || kind === 'tree');
}
