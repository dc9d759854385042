import { InvalidArgumentError } from 'commander';

/** Reads an option's number: decimal digits, from `min` to `max`; commander tells the caller what it wants instead. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}`);
    return value;
  };
}
