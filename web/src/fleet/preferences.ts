/** What an operator has chosen for this browser; kept in its local storage, and never needed to fly. */

export const THEMES = ['auto', 'dark', 'light', 'sun'] as const;
export type Theme = (typeof THEMES)[number];

export interface Preferences {
  readonly theme: Theme;
  readonly sound: boolean;
  /** Whether keys command aircraft. */
  readonly hotKeys: boolean;
}

export const DEFAULTS: Preferences = { theme: 'auto', sound: true, hotKeys: true };

const KEY = 'wingbeat.preferences';

/** What is stored, each value for itself: one that is none of ours is the default. */
export function parsePreferences(text: string | null): Preferences {
  let stored: Partial<Record<keyof Preferences, unknown>>;
  try {
    stored = (JSON.parse(text ?? '{}') ?? {}) as typeof stored;
  } catch {
    return DEFAULTS;
  }
  return {
    theme: THEMES.find((theme) => theme === stored.theme) ?? DEFAULTS.theme,
    sound: typeof stored.sound === 'boolean' ? stored.sound : DEFAULTS.sound,
    hotKeys: typeof stored.hotKeys === 'boolean' ? stored.hotKeys : DEFAULTS.hotKeys,
  };
}

/** A browser may refuse its storage: the page works all the same. */
export function readPreferences(): Preferences {
  try {
    return parsePreferences(localStorage.getItem(KEY));
  } catch {
    return DEFAULTS;
  }
}

export function writePreferences(preferences: Preferences): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences));
  } catch {
    // Then it is the default again next time.
  }
}
