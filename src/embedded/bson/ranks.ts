/** MongoDB's order of types. Values of different ranks never compare equal. */
export const RANK = {
  minKey: -1,
  missing: 0,
  null: 5,
  number: 10,
  string: 15,
  object: 20,
  array: 25,
  binary: 30,
  objectId: 35,
  boolean: 40,
  date: 45,
  timestamp: 47,
  regex: 50,
  code: 60,
  codeWithScope: 65,
  maxKey: 127,
} as const;

/** Stands before or after every value of a type, to bound an index scan; never stored. */
export class BracketEdge {
  private constructor(readonly rank: number) {}

  static before(rank: number): BracketEdge {
    return new BracketEdge(rank - 0.5);
  }

  static after(rank: number): BracketEdge {
    return new BracketEdge(rank + 0.5);
  }
}
