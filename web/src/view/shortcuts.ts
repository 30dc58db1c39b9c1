/** Single keys that act from anywhere on the page, except where the operator types. */

/** The key in lower case; undefined when it is not meant for the page. */
export function shortcutOf(event: Pick<KeyboardEvent, 'key' | 'repeat' | 'ctrlKey' | 'metaKey' | 'altKey' | 'target'>): string | undefined {
  // A key that is held down is one press; with Ctrl, Alt or Meta it is the browser's.
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const target = event.target as { tagName?: string; type?: string } | null;
  const typed = target?.tagName === 'SELECT' || target?.tagName === 'TEXTAREA' ||
    (target?.tagName === 'INPUT' && target.type !== 'checkbox');
  return typed ? undefined : event.key.toLowerCase();
}
