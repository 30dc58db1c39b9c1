// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { FleetParameters, ParameterComparison } from '../api/model';
import { FleetConsole } from '../fleet/console.svelte';
import { aircraft, stateOf } from '../fleet/samples';
import ParameterPanel from './ParameterPanel.svelte';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const COUNT = 100;
const vehicles = Array.from({ length: COUNT }, (_, index) => ({
  id: aircraft(index).status?.id ?? String(index), name: `drone ${index}`, known: 3, count: 3, age_ms: 5, drifted: index === 3 ? 1 : 0,
}));
const comparison: ParameterComparison = {
  vehicles,
  rows: [
    { name: 'INS_ACCOFFS_X', is_own: true, values: vehicles.map((_, index) => index) },
    { name: 'RTL_ALT', is_own: false, values: vehicles.map((_, index) => (index === 3 ? 1500 : 2000)), expected: vehicles.map(() => 2000) },
  ],
  files: ['fleet.param'],
  problems: ['fleet.param:4: found B without a value, expected NAME VALUE'],
};

/** A ground service that answers these, and what it was asked. */
function service(answers: { fleet?: FleetParameters; refused?: string; compared?: ParameterComparison } = {}) {
  const asked: { method: string; path: string; body: unknown }[] = [];
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    asked.push({ method: init.method ?? 'GET', path, body: init.body === undefined ? undefined : JSON.parse(String(init.body)) });
    if (answers.refused && init.method === 'PUT') return Response.json({ code: 'conflict', message: answers.refused }, { status: 409 });
    return Response.json(path.endsWith('/comparison') ? (answers.compared ?? comparison) : (answers.fleet ?? { vehicles: [] }));
  });
  const fleet = new FleetConsole();
  fleet.fleet = stateOf(Array.from({ length: COUNT }, (_, index) => aircraft(index)));
  fleet.live = true;
  render(ParameterPanel, { fleet });
  return { asked, fleet };
}

describe('the panel of parameters', () => {
  it('shows what differs of a hundred aircraft in groups, and what is wrong with the files', async () => {
    const { fleet } = service();
    const table = await screen.findByTestId('parameter-table');
    expect(table.textContent).toContain('2000 ×99');
    expect(table.textContent).not.toContain('INS_ACCOFFS_X');
    expect(screen.getByTestId('parameter-file-problems').textContent).toContain('fleet.param:4: found B');
    await fireEvent.click(screen.getByTitle('drone 3'));
    expect(fleet.selected.size).toBe(1);
    await fireEvent.input(screen.getByTestId('parameter-filter'), { target: { value: 'wpnav' } });
    expect(table.textContent).toContain('None of those that differ is shown.');
  });

  it('does not say that nothing differs before all were read', async () => {
    const unread = vehicles.slice(0, 2).map(({ id, name }) => ({ id, name, known: 0, count: 0, drifted: 0 }));
    service({ compared: { vehicles: unread, rows: [], files: [], problems: [] } });
    expect((await screen.findByTestId('parameters-none')).textContent).toBe('Nothing was read yet.');
    cleanup();
    service({ compared: { vehicles: [...unread.slice(0, 1), ...vehicles.slice(0, 2)], rows: [], files: [], problems: [] } });
    expect((await screen.findByTestId('parameters-none')).textContent).toBe('Nothing differs among those that were read.');
  });

  it('previews what would change and sets that alone', async () => {
    const outcome = { name: 'RTL_ALT', value: 2000, effect: 'set' as const };
    const { asked } = service({ fleet: { vehicles: [{ id: vehicles[3]?.id ?? '', progress: { work: 'none', revision: 2, received: 3, outcomes: [outcome] } }] } });
    const changes = await screen.findByTestId('parameter-changes');
    expect(changes.textContent).toContain('1 change on 1 aircraft');
    expect(changes.textContent).toContain('RTL_ALT 1500 → 2000');
    await fireEvent.click(screen.getByTestId('apply-parameters'));
    await waitFor(() => expect(screen.getByTestId('parameter-outcomes').textContent).toContain('1 of 1 hold'));
    expect(asked.find(({ method }) => method === 'PUT')?.body).toEqual({ vehicles: [{ vehicle: vehicles[3]?.id, parameters: [{ name: 'RTL_ALT', value: 2000 }] }] });
  });

  it('says why nothing was set', async () => {
    service({ refused: 'parameters: found armed motors, expected disarmed ones' });
    await fireEvent.click(await screen.findByTestId('apply-parameters'));
    expect((await screen.findByTestId('parameter-problem')).textContent).toContain('found armed motors');
  });
});
