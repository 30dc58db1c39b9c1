// @vitest-environment jsdom
import { afterEach, expect, test, vi } from 'vitest';
import { Sprites } from './sprites';

type Copy = readonly number[];

/** A context that keeps what is copied; jsdom draws nothing. */
function recording() {
  const copies: Copy[] = [];
  const context = { drawImage: (_: unknown, ...numbers: number[]) => copies.push(numbers) } as unknown as CanvasRenderingContext2D;
  return { copies, context };
}

const sheet = { setTransform: vi.fn(), resetTransform: vi.fn(), clearRect: vi.fn() };
vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockImplementation(() => sheet as never);
afterEach(() => vi.clearAllMocks());

const BOX = { left: -15, top: -10, width: 30, height: 20 };

test('a picture is drawn once, around its origin, and copied from there', () => {
  const { copies, context } = recording();
  const sprites = new Sprites(2);
  const paint = vi.fn();
  sprites.copy(context, 'a', BOX, paint);
  sprites.copy(context, 'b', BOX, paint);
  sprites.copy(context, 'a', BOX, paint);
  expect(paint).toHaveBeenCalledTimes(2);
  // On a screen of two pixels to one, the second stands 30 to the right of the first.
  expect(sheet.setTransform.mock.calls).toEqual([[2, 0, 0, 2, 30, 20], [2, 0, 0, 2, 90, 20]]);
  expect(copies).toEqual([[0, 0, 60, 40, -15, -10, 30, 20], [60, 0, 60, 40, -15, -10, 30, 20], [0, 0, 60, 40, -15, -10, 30, 20]]);
});

test('pictures never overlap, and there is room for those of 512 aircraft', () => {
  const { copies, context } = recording();
  const sprites = new Sprites(1);
  const paint = vi.fn();
  for (let name = 0; name < 560; name += 1) sprites.copy(context, String(name), { left: -15, top: -15, width: 30, height: 30 }, paint);
  expect(new Set(copies.map(([x, y]) => `${x} ${y}`)).size).toBe(560);
  expect(sheet.clearRect).not.toHaveBeenCalled();
  expect(Math.max(...copies.map(([x = 0]) => x))).toBeLessThanOrEqual(900 - 30);
});

test('a sheet that is full is begun anew: what is still shown is drawn again', () => {
  const { context } = recording();
  const sprites = new Sprites(1);
  const paint = vi.fn();
  const large = { left: -150, top: -150, width: 300, height: 300 };
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) sprites.copy(context, name, large, paint);
  expect(sheet.clearRect).toHaveBeenCalledTimes(1);
  sprites.copy(context, 'g', large, paint);
  expect(paint).toHaveBeenCalledTimes(7);
  sprites.copy(context, 'a', large, paint);
  expect(paint).toHaveBeenCalledTimes(8);
});
