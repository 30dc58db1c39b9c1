/** Names from outside, as they may stand in a line of text. */

/** Control characters, and what turns the direction of the text around it or joins lines. */
const STEERING = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** The text with each character that would steer it shown by its number. The element around it is a `bdi`. */
export const plain = (text: string): string =>
  text.replace(STEERING, (character) => `[U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`);
