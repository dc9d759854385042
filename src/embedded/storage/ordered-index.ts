import type { Value } from '../bson/values';

/** Wide enough to keep the tree three levels deep at a million entries, small enough that shifting a leaf costs little. */
const CAPACITY = 64;

export type IndexKey = readonly Value[];

/** Something stored under a key. `rid` tells apart and orders the entries of one key. */
export interface Entry {
  readonly rid: number;
}

/** A place between entries: before, or after, all entries whose key starts with the prefix. */
export interface Bound {
  readonly prefix: IndexKey;
  readonly after: boolean;
}

export interface IndexRange {
  readonly from: Bound;
  readonly to: Bound;
}

/** Compares the first `length` components of two keys. */
export type KeyOrder = (a: IndexKey, b: IndexKey, length: number) => number;

class Leaf<E extends Entry> {
  keys: IndexKey[] = [];
  entries: E[] = [];
  previous: Leaf<E> | undefined;
  next: Leaf<E> | undefined;

  get count(): number {
    return this.keys.length;
  }

  get width(): number {
    return this.keys.length;
  }
}

class Inner<E extends Entry> {
  count = 0;
  children: Node<E>[] = [];
  /** `keys[i]` and `rids[i]`: nothing in child `i` is above, nothing in child `i + 1` is below. */
  keys: IndexKey[] = [];
  rids: number[] = [];

  get width(): number {
    return this.children.length;
  }
}

type Node<E extends Entry> = Leaf<E> | Inner<E>;

interface Split<E extends Entry> {
  readonly key: IndexKey;
  readonly rid: number;
  readonly right: Node<E>;
}

/** True for the entries that lie at or after the place that is sought. */
type IsBeyond = (key: IndexKey, rid: number) => boolean;

interface Place<E extends Entry> {
  readonly leaf: Leaf<E>;
  readonly position: number;
  /** How many entries come before. */
  readonly rank: number;
}

/**
 * A B+ tree over compound keys that counts the entries below every node, so that the size of any range is known in
 * O(log n). Entries are ordered by key, then by `rid`.
 */
export class OrderedIndex<E extends Entry> {
  #root: Node<E> = new Leaf<E>();
  #version = 0;
  readonly #order: KeyOrder;
  readonly #length: number;

  constructor(order: KeyOrder, keyLength: number) {
    this.#order = order;
    this.#length = keyLength;
  }

  get size(): number {
    return this.#root.count;
  }

  /** Changes with every insertion and removal; a scan uses it to see that its place may have moved. */
  get version(): number {
    return this.#version;
  }

  insert(key: IndexKey, entry: E): void {
    this.#version++;
    const split = this.#insertInto(this.#root, key, entry);
    if (!split) return;
    const root = new Inner<E>();
    root.children = [this.#root, split.right];
    root.keys = [split.key];
    root.rids = [split.rid];
    root.count = this.#root.count + split.right.count;
    this.#root = root;
  }

  /** @returns false when there is no such entry */
  remove(key: IndexKey, rid: number): boolean {
    if (!this.#removeFrom(this.#root, key, rid)) return false;
    this.#version++;
    while (this.#root instanceof Inner && this.#root.children.length === 1) {
      this.#root = this.#root.children[0] as Node<E>;
    }
    return true;
  }

  /** The first entry with that key, other than `exceptRid`'s. */
  findOther(key: IndexKey, exceptRid: number | undefined): E | undefined {
    const scan = this.scan({ from: { prefix: key, after: false }, to: { prefix: key, after: true } }, false);
    while (scan.next()) {
      if (scan.entry.rid !== exceptRid) return scan.entry;
    }
    return undefined;
  }

  rankOf(bound: Bound): number {
    return this.seek(this.#beyond(bound)).rank;
  }

  countIn(range: IndexRange): number {
    return Math.max(0, this.rankOf(range.to) - this.rankOf(range.from));
  }

  scan(range: IndexRange, backward: boolean): IndexScan<E> {
    return new IndexScan(this, this.#beyond(range.from), this.#beyond(range.to), backward);
  }

  compareEntries(a: IndexKey, ridA: number, b: IndexKey, ridB: number): number {
    return this.#order(a, b, this.#length) || ridA - ridB;
  }

  seek(isBeyond: IsBeyond): Place<E> {
    let node = this.#root;
    let rank = 0;
    while (node instanceof Inner) {
      let low = 0;
      let high = node.keys.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (isBeyond(node.keys[middle] as IndexKey, node.rids[middle] as number)) high = middle;
        else low = middle + 1;
      }
      for (let i = 0; i < low; i++) rank += (node.children[i] as Node<E>).count;
      node = node.children[low] as Node<E>;
    }
    let low = 0;
    let high = node.keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBeyond(node.keys[middle] as IndexKey, (node.entries[middle] as E).rid)) high = middle;
      else low = middle + 1;
    }
    return { leaf: node, position: low, rank: rank + low };
  }

  #beyond({ prefix, after }: Bound): IsBeyond {
    const { length } = prefix;
    return after
      ? (key) => this.#order(key, prefix, length) > 0
      : (key) => this.#order(key, prefix, length) >= 0;
  }

  #childFor(node: Inner<E>, key: IndexKey, rid: number): number {
    let low = 0;
    let high = node.keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.compareEntries(node.keys[middle] as IndexKey, node.rids[middle] as number, key, rid) > 0)
        high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #placeIn(leaf: Leaf<E>, key: IndexKey, rid: number): number {
    let low = 0;
    let high = leaf.keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (
        this.compareEntries(leaf.keys[middle] as IndexKey, (leaf.entries[middle] as E).rid, key, rid) >= 0
      ) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  #insertInto(node: Node<E>, key: IndexKey, entry: E): Split<E> | undefined {
    if (node instanceof Leaf) {
      const position = this.#placeIn(node, key, entry.rid);
      node.keys.splice(position, 0, key);
      node.entries.splice(position, 0, entry);
      return node.keys.length > CAPACITY ? this.#splitLeaf(node, position) : undefined;
    }
    const index = this.#childFor(node, key, entry.rid);
    const split = this.#insertInto(node.children[index] as Node<E>, key, entry);
    node.count++;
    if (!split) return undefined;
    node.children.splice(index + 1, 0, split.right);
    node.keys.splice(index, 0, split.key);
    node.rids.splice(index, 0, split.rid);
    return node.children.length > CAPACITY ? this.#splitInner(node) : undefined;
  }

  #splitLeaf(leaf: Leaf<E>, insertedAt: number): Split<E> {
    // Keys that only grow (ids, times) fill each leaf before they start the next one.
    const appended = insertedAt === leaf.keys.length - 1 && !leaf.next;
    const middle = appended ? leaf.keys.length - 1 : leaf.keys.length >>> 1;
    const right = new Leaf<E>();
    right.keys = leaf.keys.splice(middle);
    right.entries = leaf.entries.splice(middle);
    right.next = leaf.next;
    right.previous = leaf;
    if (leaf.next) leaf.next.previous = right;
    leaf.next = right;
    return { key: right.keys[0] as IndexKey, rid: (right.entries[0] as E).rid, right };
  }

  #splitInner(node: Inner<E>): Split<E> {
    const middle = node.children.length >>> 1;
    const right = new Inner<E>();
    right.children = node.children.splice(middle);
    right.keys = node.keys.splice(middle);
    right.rids = node.rids.splice(middle);
    const key = node.keys.pop() as IndexKey;
    const rid = node.rids.pop() as number;
    for (const child of right.children) right.count += child.count;
    node.count -= right.count;
    return { key, rid, right };
  }

  #removeFrom(node: Node<E>, key: IndexKey, rid: number): boolean {
    if (node instanceof Leaf) {
      const position = this.#placeIn(node, key, rid);
      const entry = node.entries[position];
      if (entry?.rid !== rid || this.#order(node.keys[position] as IndexKey, key, this.#length) !== 0)
        return false;
      node.keys.splice(position, 1);
      node.entries.splice(position, 1);
      return true;
    }
    const index = this.#childFor(node, key, rid);
    const child = node.children[index] as Node<E>;
    if (!this.#removeFrom(child, key, rid)) return false;
    node.count--;
    if (child.width < CAPACITY / 4 && node.children.length > 1) this.#mergeChild(node, index);
    return true;
  }

  /** Joins a sparse child with a neighbour when both fit into half a node, so that it is not split again at once. */
  #mergeChild(node: Inner<E>, index: number): void {
    for (const left of [index - 1, index]) {
      const a = node.children[left];
      const b = node.children[left + 1];
      if (!a || !b || (a.width + b.width > CAPACITY / 2 && a.width > 0 && b.width > 0)) continue;
      if (a instanceof Leaf && b instanceof Leaf) {
        a.keys.push(...b.keys);
        a.entries.push(...b.entries);
        a.next = b.next;
        if (b.next) b.next.previous = a;
      } else if (a instanceof Inner && b instanceof Inner) {
        a.keys.push(node.keys[left] as IndexKey, ...b.keys);
        a.rids.push(node.rids[left] as number, ...b.rids);
        a.children.push(...b.children);
        a.count += b.count;
      }
      node.children.splice(left + 1, 1);
      node.keys.splice(left, 1);
      node.rids.splice(left, 1);
      return;
    }
  }
}

/** Walks a range. It stays valid while the index changes: entries are then found again by the last one seen. */
export class IndexScan<E extends Entry> {
  readonly #index: OrderedIndex<E>;
  readonly #from: IsBeyond;
  readonly #to: IsBeyond;
  readonly #backward: boolean;
  #leaf: Leaf<E> | undefined;
  #position = 0;
  #version = -1;
  #started = false;
  #key: IndexKey = [];
  #entry: E | undefined;

  constructor(index: OrderedIndex<E>, from: IsBeyond, to: IsBeyond, backward: boolean) {
    this.#index = index;
    this.#from = from;
    this.#to = to;
    this.#backward = backward;
  }

  get key(): IndexKey {
    return this.#key;
  }

  /** The entry that the last `next()` arrived at. */
  get entry(): E {
    return this.#entry as E;
  }

  /** @returns false at the end of the range */
  next(): boolean {
    if (this.#version !== this.#index.version) this.#seek();
    else this.#position += this.#backward ? -1 : 1;
    while (this.#leaf && (this.#position < 0 || this.#position >= this.#leaf.count)) this.#changeLeaf();
    if (!this.#leaf) return false;
    const key = this.#leaf.keys[this.#position] as IndexKey;
    const entry = this.#leaf.entries[this.#position] as E;
    if (this.#backward ? !this.#from(key, entry.rid) : this.#to(key, entry.rid)) {
      this.#leaf = undefined;
      return false;
    }
    this.#key = key;
    this.#entry = entry;
    return true;
  }

  #changeLeaf(): void {
    if (!this.#leaf) return;
    if (this.#backward) {
      this.#leaf = this.#leaf.previous;
      this.#position = (this.#leaf?.count ?? 0) - 1;
    } else {
      this.#leaf = this.#leaf.next;
      this.#position = 0;
    }
  }

  #seek(): void {
    if (this.#started && !this.#leaf) return;
    const { leaf, position } = this.#index.seek(this.#startOf());
    this.#leaf = leaf;
    this.#position = this.#backward ? position - 1 : position;
    this.#version = this.#index.version;
    this.#started = true;
  }

  #startOf(): IsBeyond {
    if (!this.#entry) return this.#backward ? this.#to : this.#from;
    const [lastKey, lastRid] = [this.#key, this.#entry.rid];
    return this.#backward
      ? (key, rid) => this.#index.compareEntries(key, rid, lastKey, lastRid) >= 0
      : (key, rid) => this.#index.compareEntries(key, rid, lastKey, lastRid) > 0;
  }
}
