import type { ContractValue } from '../stellar/contract-value';

/**
 * Contracts of one family write the same name as `certificate_minted`, `CertificateMinted` and `certificateminted`.
 * Names are compared decoded and in this folded form, never as XDR text.
 */
export const foldName = (name: string): string => name.toLowerCase().replaceAll('_', '');

const ANY = '*';

/** A topic list in the form that patterns are held against: the folded name of each segment, null where it has none. */
export type TopicNames = readonly (string | null)[];

export function topicNames(topics: readonly ContractValue[]): TopicNames {
  return topics.map((topic) =>
    topic.type === 'symbol' || topic.type === 'string' ? foldName(topic.value) : null,
  );
}

/** See {@link EventHandlerDefinition.topics} for the form. A pattern names the leading segments; more may follow. */
export function compileTopicPattern(pattern: string): (names: TopicNames) => boolean {
  if (pattern.trim() === ANY) return () => true;
  const segments = pattern.split('/').map((segment) => foldName(segment.trim()));
  if (segments.some((segment) => segment === ''))
    throw new RangeError(`topic pattern ${JSON.stringify(pattern)} has an empty segment`);
  return (names) =>
    names.length >= segments.length &&
    segments.every((segment, index) => segment === ANY || segment === names[index]);
}
