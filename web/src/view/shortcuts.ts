/**
 * Keys that act from anywhere on the page, except where the operator types. What moves the map acts when it is pressed; what commands
 * aircraft must be held down, and nothing that a hand does by accident is that: `HOLD_KEY_MS` without a repeat of another key.
 */

/** For how long a key that commands aircraft is held down. */
export const HOLD_KEY_MS = 800;

/** The key in lower case; undefined when it is not meant for the page. */
export function shortcutOf(event: Pick<KeyboardEvent, 'key' | 'repeat' | 'ctrlKey' | 'metaKey' | 'altKey' | 'target'>): string | undefined {
  // A key that is held down is one press; with Ctrl, Alt or Meta it is the browser's.
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const target = event.target as { tagName?: string; type?: string } | null;
  const typed = target?.tagName === 'SELECT' || target?.tagName === 'TEXTAREA' ||
    (target?.tagName === 'INPUT' && target.type !== 'checkbox');
  return typed ? undefined : event.key.toLowerCase();
}

export interface Shortcut {
  readonly keys: string;
  readonly text: string;
}

export const COMMAND_KEYS: readonly Shortcut[] = [
  { keys: 'H held', text: 'Hold the selected aircraft' },
  { keys: 'R held', text: 'Return the selected aircraft' },
  { keys: 'L held', text: 'Land the selected aircraft; asks once more' },
  { keys: 'Shift H held', text: 'Hold all aircraft' },
];

export const VIEW_KEYS: readonly Shortcut[] = [
  { keys: 'F', text: 'Fit the map to the fleet' },
  { keys: 'Z', text: 'Zoom to the selected aircraft and those that they avoid' },
  { keys: 'T', text: 'Zoom to the aircraft in trouble' },
  { keys: 'W', text: 'Follow the selected aircraft' },
  { keys: 'M', text: 'Measure on the map' },
  { keys: 'O', text: 'Show or hide the formation' },
  { keys: 'C', text: 'Show or hide the corridors of the routes' },
  { keys: 'P', text: 'Predicted positions of all aircraft, or not' },
  { keys: 'A', text: 'Alarms' },
  { keys: 'Delete', text: 'In Plan, on the map: remove the waypoint that was touched last' },
  { keys: 'Esc', text: 'Cancel, then close, then address all' },
  { keys: 'Arrows, Space, Enter', text: 'In the fleet: move, add to the selection, select one alone' },
];
