/** Mission files as they are chosen: their text, and how the ground service reads them. */
import type { MissionFileOptions } from '../api/model';

/** What the operator states about the files before they are opened, as it is typed. */
export interface FileForm {
  /** payload, numbers of MAVLink commands, hold, speed, yaw, take_off, end; separated by commas. */
  readonly leaveOut: string;
  /** latitude, longitude, altitude above sea level. */
  readonly home: string;
  readonly kmlHeightM: string;
  readonly heightMostM: string;
  readonly speedMostMS: string;
}

export const EMPTY_FORM: FileForm = { leaveOut: '', home: '', kmlHeightM: '', heightMostM: '', speedMostMS: '' };

const PARTS = ['hold', 'speed', 'yaw', 'take_off', 'end'] as const;

const isPart = (word: string): word is (typeof PARTS)[number] => (PARTS as readonly string[]).includes(word);

/** The options of a request, or what is wrong with the form. */
export function optionsOf({ leaveOut, home, kmlHeightM, heightMostM, speedMostMS }: FileForm): MissionFileOptions | string {
  const options: MissionFileOptions = {};
  for (const word of words(leaveOut)) {
    if (word === 'payload') options.leave_out_payload = true;
    else if (isPart(word)) options.leave_out = [...(options.leave_out ?? []), word];
    else if (/^\d+$/.test(word)) options.leave_out_commands = [...(options.leave_out_commands ?? []), Number(word)];
    else return `Leave out: found ${word}, expected payload, the number of a command, ${PARTS.slice(0, -1).join(', ')} or end`;
  }
  const place = words(home).map(Number);
  if (home.trim() !== '') {
    const [latitude_deg, longitude_deg, altitude_m] = place;
    if (place.length !== 3 || latitude_deg === undefined || longitude_deg === undefined || altitude_m === undefined || !place.every(Number.isFinite)) {
      return `Home: found ${home}, expected latitude, longitude, altitude above sea level`;
    }
    options.home = { latitude_deg, longitude_deg, altitude_m };
  }
  for (const [name, key, text] of [['Height of KML paths', 'kml_height_least_m', kmlHeightM], ['Greatest height', 'height_most_m', heightMostM], ['Greatest speed', 'speed_most_m_s', speedMostMS]] as const) {
    if (text.trim() === '') continue;
    const value = Number(text);
    if (!(value > 0)) return `${name}: found ${text}, expected a number greater than 0`;
    options[key] = value;
  }
  return options;
}

const words = (text: string): string[] => text.split(',').map((word) => word.trim()).filter((word) => word !== '');

/** Returns what the ground service reads of a file: its text, or a KMZ archive as base64. Undefined where the bytes are neither. */
export function contentOf(bytes: Uint8Array): { readonly text: string } | { readonly archive: string } | undefined {
  const isArchive = [0x50, 0x4b, 0x03, 0x04].every((byte, index) => bytes[index] === byte);
  if (isArchive) return { archive: btoa(latin1(bytes)) };
  const text = textOf(bytes);
  return text === undefined ? undefined : { text };
}

const latin1 = (bytes: Uint8Array): string => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');

/** The text of a file that another program may have written: UTF-8, UTF-16 with a byte order mark, or Latin-1. Undefined where the bytes are no text. */
export function textOf(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes;
  const utf16 = first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : undefined;
  try {
    return new TextDecoder(utf16 ?? 'utf-8', { fatal: true }).decode(bytes);
  } catch {
    const isControl = (byte: number) => byte < 9 || (byte > 13 && byte < 32) || byte === 127;
    if (utf16 !== undefined || bytes.some(isControl)) return undefined;
    return latin1(bytes);
  }
}
