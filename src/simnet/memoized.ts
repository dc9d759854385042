const MOST = 10_000;

/** Remembers what a pure function made of a text. The SDK decodes addresses slowly, and a network meets the same ones all day. */
export const memoized = <T>(make: (text: string) => T): ((text: string) => T) => {
  const known = new Map<string, T>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const made = make(text);
    if (known.size >= MOST) known.clear();
    known.set(text, made);
    return made;
  };
};
