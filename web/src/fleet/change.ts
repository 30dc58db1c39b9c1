/** Applies the changes that the event stream carries in place of whole aircraft. What did not change keeps its identity. */

/**
 * An object changes the members that it names; on a list it changes the elements by their index; every other value takes the
 * place of the old one. The service makes such changes in `crates/ground/src/delta.rs`.
 */
export function applyChange(old: unknown, change: unknown): unknown {
  if (!isObject(change)) return change;
  if (Array.isArray(old)) {
    const changed: unknown[] = [...old];
    for (const [index, value] of Object.entries(change)) changed[Number(index)] = applyChange(changed[Number(index)], value);
    return changed;
  }
  if (!isObject(old)) return change;
  const changed: Record<string, unknown> = { ...old };
  for (const [name, value] of Object.entries(change)) changed[name] = applyChange(changed[name], value);
  return changed;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
