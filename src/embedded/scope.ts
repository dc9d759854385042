import type { Environment } from './aggregation/expression';
import { compileExpression, isTruthy } from './aggregation/expression';
import type { StringOrder } from './bson/compare';
import type { Document, Value } from './bson/values';
import { isDocument, isNumeric, toNumber } from './bson/values';
import { Deadline } from './deadline';
import { badValue, typeMismatch } from './errors';
import type { DocumentTest } from './query/filter';
import { compileFilter } from './query/filter';
import type { ProjectionContext } from './query/projection';

/** The order of a collation, by the rules of the machine's ICU. Undefined for the simple one, by bytes. */
function stringOrderOf(collation: Value): StringOrder | undefined {
  if (collation === undefined) return undefined;
  if (!isDocument(collation) || typeof collation.locale !== 'string') {
    throw badValue("BSON field 'collation.locale' is missing but a required field");
  }
  if (collation.locale === 'simple') return undefined;
  const strength = isNumeric(collation.strength) ? toNumber(collation.strength) : 3;
  const sensitivity =
    collation.caseLevel === true && strength === 1 ? 'case' : (['base', 'base', 'accent'] as const)[strength];
  try {
    const { compare } = new Intl.Collator(collation.locale.replace('_', '-'), {
      sensitivity: sensitivity ?? 'variant',
      numeric: collation.numericOrdering === true,
      ...(typeof collation.caseFirst === 'string' && collation.caseFirst !== 'off'
        ? { caseFirst: collation.caseFirst as 'upper' | 'lower' }
        : {}),
    });
    return compare;
  } catch {
    throw badValue(`Field 'locale' is invalid in: { locale: "${collation.locale}" }`);
  }
}

/** What all parts of one command share: its moment, its variables, its way to compare strings, its time limit. */
export class Scope implements ProjectionContext {
  readonly environment: Environment;
  readonly strings?: StringOrder;
  readonly deadline: Deadline;

  constructor(
    readonly now: Date,
    variables: Document,
    strings: StringOrder | undefined,
    deadline: Deadline,
    readonly filter?: Document,
  ) {
    this.environment = { now, variables };
    this.deadline = deadline;
    if (strings) this.strings = strings;
  }

  /** @param let_ the values of `let`, which are constant expressions */
  static of(body: Document, now: Date): Scope {
    const { maxTimeMS = 0, let: let_ } = body;
    if (!isNumeric(maxTimeMS)) throw typeMismatch("BSON field 'maxTimeMS' is the wrong type");
    if (toNumber(maxTimeMS) < 0) throw badValue('maxTimeMS must be non-negative');
    const deadline = new Deadline(toNumber(maxTimeMS));
    const bare = new Scope(now, {}, undefined, deadline);
    const variables = isDocument(let_)
      ? Object.fromEntries(
          Object.entries(let_).map(([name, each]) => [name, bare.evaluator(each)({}) ?? null]),
        )
      : {};
    return new Scope(now, variables, stringOrderOf(body.collation), deadline);
  }

  /** The same, for one statement of a batch that has a collation or a filter of its own. */
  with({ filter, collation }: { filter?: Document; collation?: Value }): Scope {
    const strings = collation === undefined ? this.strings : stringOrderOf(collation);
    return new Scope(this.now, this.environment.variables, strings, this.deadline, filter);
  }

  /** The same, with more variables. */
  withVariables(variables: Document): Scope {
    return new Scope(
      this.now,
      { ...this.environment.variables, ...variables },
      this.strings,
      this.deadline,
      this.filter,
    );
  }

  readonly evaluator = (expression: Value): ((document: Document) => Value) =>
    compileExpression(expression, this.environment);

  readonly expression = (expression: Value): DocumentTest => {
    const evaluate = this.evaluator(expression);
    return (document) => isTruthy(evaluate(document));
  };

  test(filter: Document): DocumentTest {
    return compileFilter(filter, this);
  }
}
