// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { FleetLinks } from '../api/model';
import { FleetConsole } from '../fleet/console.svelte';
import { aircraft, stateOf } from '../fleet/samples';
import LinkPanel from './LinkPanel.svelte';

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** The panel with so many aircraft; what it has drawn. */
function panel(count: number) {
  const fleet = new FleetConsole();
  fleet.fleet = stateOf(Array.from({ length: count }, (_, index) => aircraft(index)));
  fleet.live = true;
  const ids = fleet.fleet.aircraft.map(({ fleet: { status } }) => status?.id ?? '');
  const links: FleetLinks = {
    age_ms: 100, missing: [],
    aircraft: [{ id: ids[1] ?? '', links: [{ from: ids[0] ?? '', received: 15, lost: 15, distance_m: 12, age_ms: 50 }] }],
  } as unknown as FleetLinks;
  vi.stubGlobal('fetch', async () => Response.json(links));
  const cells: [number, number][] = [];
  const context = new Proxy({}, { get: (_, name) => (name === 'fillRect' ? (x: number, y: number) => cells.push([x, y]) : () => undefined), set: () => true });
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(context as unknown as null);
  render(LinkPanel, { fleet });
  return { cells };
}

describe('the matrix of links', () => {
  it('is a table of numbers for a few aircraft', async () => {
    panel(3);
    const matrix = screen.getByTestId('links');
    await waitFor(() => expect(matrix.querySelector('[data-loss="0.5"]')?.textContent).toBe('50'));
    expect(matrix.querySelectorAll('[role=gridcell]').length).toBe(9);
  });

  it('is one drawing for a hundred, by mouse and by keyboard', async () => {
    const { cells } = panel(100);
    const matrix = screen.getByTestId('links');
    await waitFor(() => expect(cells.length).toBeGreaterThanOrEqual(100 * 99));
    expect(matrix.querySelectorAll('*').length).toBe(1);
    await waitFor(() => expect(screen.getByTestId('link').textContent).toContain('50 % lost'));
    const value = (id: string) => (screen.getByTestId(id) as HTMLSelectElement).selectedIndex;
    // From the first link past the diagonal to the third row, and past it again.
    await fireEvent.keyDown(matrix, { key: 'ArrowDown' });
    await fireEvent.keyDown(matrix, { key: 'ArrowRight' });
    expect(screen.getByTestId('link').textContent).toContain('no probe received');
    await fireEvent.keyDown(matrix, { key: 'Enter' });
    expect([value('test-sender'), value('test-receiver')]).toEqual([2, 3]);
    // The names, the diagonal: no link.
    for (const [x, y] of [[10, 60], [49, 49]]) {
      const event = new MouseEvent('click', { bubbles: true });
      Object.defineProperties(event, { offsetX: { value: x }, offsetY: { value: y } });
      await fireEvent(matrix, event);
    }
    expect([value('test-sender'), value('test-receiver')]).toEqual([2, 3]);
    const event = new MouseEvent('click', { bubbles: true });
    Object.defineProperties(event, { offsetX: { value: 44 + 9 * 7 + 4 }, offsetY: { value: 44 + 9 * 5 + 4 } });
    await fireEvent(matrix, event);
    expect([value('test-sender'), value('test-receiver')]).toEqual([5, 7]);
  });
});
