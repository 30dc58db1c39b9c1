// @vitest-environment jsdom
import { expect, test } from 'vitest';
import { creditOf } from './ground';

test('of an attribution the text and the address are shown, and nothing of it runs', () => {
  expect(creditOf('<a href="https://www.openstreetmap.org/copyright">© OpenStreetMap\n contributors</a>')).toEqual({ text: '© OpenStreetMap contributors', href: 'https://www.openstreetmap.org/copyright' });
  expect(creditOf('made by make.py')).toEqual({ text: 'made by make.py', href: undefined });
  expect(creditOf('<script>alert(1)</script><a href="javascript:alert(1)">Somewhere</a><img src=x onerror=alert(1)>')).toEqual({ text: 'Somewhere', href: undefined });
  for (const nothing of [undefined, 7, '', '<b> </b>']) expect(creditOf(nothing)).toBeUndefined();
  expect(creditOf('a'.repeat(1000))?.text).toHaveLength(200);
});
