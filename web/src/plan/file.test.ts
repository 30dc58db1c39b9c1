import { describe, expect, it } from 'vitest';
import { contentOf, EMPTY_FORM, optionsOf, textOf } from './file';

describe('mission files', () => {
  it('are read with the options of the form', () => {
    expect(optionsOf(EMPTY_FORM)).toEqual({});
    expect(optionsOf({ leaveOut: 'payload, 112, hold,take_off', home: '39.48, -0.34, 5', kmlHeightM: '20', heightMostM: '150', speedMostMS: '' })).toEqual({
      leave_out_payload: true, leave_out_commands: [112], leave_out: ['hold', 'take_off'],
      home: { latitude_deg: 39.48, longitude_deg: -0.34, altitude_m: 5 }, kml_height_least_m: 20, height_most_m: 150,
    });
    for (const [form, words] of [[{ leaveOut: 'camera' }, 'found camera'], [{ home: '39.48' }, 'Home: found 39.48'], [{ kmlHeightM: '-1' }, 'Height of KML paths']] as const) {
      expect(optionsOf({ ...EMPTY_FORM, ...form })).toContain(words);
    }
  });

  it('are text in UTF-8, UTF-16 or Latin-1', () => {
    const text = 'Calibração';
    const latin1 = Uint8Array.from(text, (character) => character.charCodeAt(0));
    const utf16 = new Uint8Array([0xff, 0xfe, ...Array.from(latin1).flatMap((byte) => [byte, 0])]);
    for (const bytes of [new TextEncoder().encode(text), latin1, utf16]) expect(textOf(bytes)).toBe(text);
    expect(textOf(new Uint8Array([0xff, 0x00, 0x01]))).toBeUndefined();
    expect(contentOf(new Uint8Array([0x50, 0x4b, 3, 4, 0xff]))).toEqual({ archive: 'UEsDBP8=' });
    expect(contentOf(latin1)).toEqual({ text });
  });
});
