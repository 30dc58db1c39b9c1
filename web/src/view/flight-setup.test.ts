// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { FlightSetup as Setup, FlightSetupChoice, PlanFile } from '../api/model';
import { checkTable } from '../fleet/checks';
import { FleetConsole } from '../fleet/console.svelte';
import { aircraft, stateOf } from '../fleet/samples';
import { differences } from '../plan/flight.svelte';
import FlightSetup from './FlightSetup.svelte';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const ids = [0, 1, 2].map((index) => aircraft(index).status?.id ?? '');
const LINEAR: Setup = { protocol: 'muscop', leader: ids[0] ?? '', aircraft: 3, formation: 'linear', distance_m: 50, landing_distance_m: 10, take_off: 'sequential', landing: 'simultaneous' };
const MANNERS = ['sequential', 'simultaneous'];
const CHOICES: FlightSetupChoice[] = [
  {
    protocol: 'muscop',
    keys: [
      { key: 'leader' }, { key: 'aircraft', least: 2, most: 128 }, { key: 'formation', values: ['linear', 'wedge'] }, { key: 'distance_m', least: 1, most: 10_000 },
      { key: 'landing_distance_m', least: 1, most: 10_000 }, { key: 'take_off', values: MANNERS }, { key: 'landing', values: MANNERS },
    ],
  },
  { protocol: 'follow_me', keys: [{ key: 'leader' }, { key: 'aircraft', least: 2, most: 128 }, { key: 'formation', values: ['linear', 'wedge'] }, { key: 'distance_m', least: 1, most: 10_000 }, { key: 'height_m', least: 2, most: 120 }, { key: 'landing', values: ['in_place', 'formation'] }] },
  { protocol: 'mbcap', keys: [{ key: 'variant', values: ['mbcap-e', 'mbcap'] }, { key: 'speed_m_s', least: 0.5, most: 20 }] },
];
const MISSION = { name: 'field', waypoints: [{ latitude_deg: 39.48, longitude_deg: -0.34, height_m: 20 }] };
const SAVED: PlanFile = { protocol: 'muscop', aircraft: 9, formation: 'wedge', distance_m: 30, take_off: 'simultaneous', speed_m_s: 6, missions: [MISSION], home: { latitude_deg: 39.481, longitude_deg: -0.341, altitude_m: 7 } };

/** A ground service whose second aircraft refuses, and what it was asked. */
async function page() {
  const asked: { method: string; path: string; body: unknown }[] = [];
  const place = (right_m: number) => ({ right_m, ahead_m: 0 });
  const formations = ['linear', 'wedge', 'circle'].map((name) => ({ name, appearance: name, places: [place(-50), place(0), place(50)], leads: 1 }));
  const fleet = new FleetConsole();
  const show = (setup: Setup, source: 'configuration' | 'operator') =>
    (fleet.fleet = stateOf(ids.map((_, index) => aircraft(index, { flight_setup: index === 1 && source === 'operator' ? { source: 'configuration', setup: LINEAR } : { source, setup } }))));
  vi.stubGlobal('fetch', async (path: string, init?: RequestInit) => {
    const { method = 'GET', body } = init ?? {};
    asked.push({ method, path, body: body === undefined ? undefined : JSON.parse(String(body)) });
    if (path.startsWith('/api/v1/plan/formations?')) return Response.json({ formations });
    if (path === '/api/v1/plan/file') return Response.json({ name: 'field.toml', text: 'name = "field"', notes: [] });
    if (path === '/api/v1/plan/saved') return Response.json(SAVED);
    const sent = method === 'PUT' ? (JSON.parse(String(body)) as { setup: Setup | null }).setup : null;
    const [setup, source] = sent ? [{ ...LINEAR, ...sent }, 'operator' as const] : [LINEAR, 'configuration' as const];
    if (method === 'PUT') show(setup, source);
    const vehicles = ids.map((id, index) => (sent && index === 1 ? { id, problem: 'found armed motors' } : { id, state: { source, setup, choices: CHOICES } }));
    return Response.json({ vehicles });
  });
  show(LINEAR, 'configuration');
  fleet.live = true;
  fleet.showsSetup = true;
  const ondownload = vi.fn();
  render(FlightSetup, { fleet, ondownload });
  await screen.findByTestId('setup-protocol');
  const puts = () => asked.filter(({ method }) => method === 'PUT').map(({ body }) => body);
  return { fleet, ondownload, asked, puts };
}

const change = (testid: string, value: string) => fireEvent.change(screen.getByTestId(testid), { target: { value } });

describe('the panel of the flight set-up', () => {
  it('begins with what the aircraft have, sends what was chosen, and shows what each did with it', async () => {
    const { puts } = await page();
    const pictures = await screen.findAllByTestId('setup-formation');
    expect(pictures.map((one) => [(one as HTMLInputElement).value, (one as HTMLInputElement).checked])).toEqual([['linear', true], ['wedge', false]]);
    expect(document.querySelectorAll('svg circle')).toHaveLength(6);
    expect((screen.getByTestId('setup-distance_m') as HTMLInputElement).value).toBe('50');
    await fireEvent.click(pictures[1]!);
    await change('setup-distance_m', '30');
    await change('setup-take_off', 'simultaneous');
    await fireEvent.click(screen.getByTestId('send-setup'));
    await waitFor(() => expect(puts()).toEqual([{ vehicles: [], setup: { ...LINEAR, formation: 'wedge', distance_m: 30, take_off: 'simultaneous' } }]));
    await waitFor(() => expect(screen.getAllByTestId('setup-row').map(({ dataset }) => dataset['state'])).toEqual(['held', 'refused', 'held']));
    const rows = screen.getAllByTestId('setup-row').map(({ textContent }) => textContent);
    expect(screen.getByTestId('setup-held').textContent).toContain('MUSCOP, UAV 0 leads, 3 aircraft, wedge, spacing 30 m, spacing at landing 10 m, take-off together, landing together');
    expect(rows[0]).toContain('set by an operator');
    expect(rows[1]).toContain('formation linear, most have wedge');
    expect(rows[1]).toContain('found armed motors');
  });

  it('has the keys of the protocol that is chosen, and goes back to what is configured', async () => {
    const { puts } = await page();
    await change('setup-protocol', 'mbcap');
    expect(screen.queryByTestId('setup-formation')).toBeNull();
    await change('setup-speed_m_s', '99');
    expect(screen.getByTestId('setup-speed_m_s').getAttribute('aria-invalid')).toBe('true');
    await change('setup-speed_m_s', '4');
    await fireEvent.click(screen.getByTestId('send-setup'));
    await waitFor(() => expect(puts()).toEqual([{ vehicles: [], setup: { protocol: 'mbcap', speed_m_s: 4 } }]));
    await waitFor(() => expect((screen.getByTestId('clear-setup') as HTMLButtonElement).disabled).toBe(false));
    await fireEvent.click(screen.getByTestId('clear-setup'));
    await waitFor(() => expect(puts()[1]).toEqual({ vehicles: [], setup: null }));
    await waitFor(() => expect((screen.getByTestId('setup-protocol') as HTMLSelectElement).value).toBe('muscop'));
  });

  it('saves set-up and mission as a plan file, and opens one', async () => {
    const { fleet, ondownload, asked } = await page();
    expect((screen.getByTestId('save-plan') as HTMLButtonElement).disabled).toBe(true);
    const file = new File(['name = "a"'], 'a.toml');
    await fireEvent.change(screen.getByTestId('open-plan'), { target: { files: [file] } });
    await waitFor(() => expect(fleet.planner.drawn.map(({ mission }) => mission)).toEqual([MISSION]));
    expect(asked.find(({ path }) => path === '/api/v1/plan/saved')?.body).toEqual({ name: 'a.toml', text: 'name = "a"' });
    expect((screen.getByTestId('setup-aircraft') as HTMLInputElement).value).toBe('9');
    await fireEvent.click(screen.getByTestId('save-plan'));
    await waitFor(() => expect(ondownload).toHaveBeenCalledWith({ name: 'field.toml', text: 'name = "field"', notes: [] }));
    expect(asked.find(({ path }) => path === '/api/v1/plan/file')?.body).toEqual(SAVED);
    // Of another mission it says nothing.
    fleet.planner.clear();
    fleet.planner.edit({ ...MISSION, waypoints: [...MISSION.waypoints, ...MISSION.waypoints] });
    await fireEvent.click(screen.getByTestId('save-plan'));
    await waitFor(() => expect(asked.filter(({ path }) => path === '/api/v1/plan/file')).toHaveLength(2));
    expect(asked.findLast(({ path }) => path === '/api/v1/plan/file')?.body).not.toHaveProperty('home');
  });
});

describe('a plan that follows a pilot', () => {
  it('is saved without a mission, with the pilot of the bench', async () => {
    const { asked } = await page();
    await change('setup-protocol', 'follow_me');
    await change('setup-height_m', '25');
    await change('plan-pilot', 'drawn:300');
    await change('plan-speed', '6');
    const save = screen.getByTestId('save-plan') as HTMLButtonElement;
    expect(save.disabled).toBe(false);
    await fireEvent.click(save);
    await waitFor(() => expect(asked.find(({ path }) => path === '/api/v1/plan/file')?.body).toEqual({
      protocol: 'follow_me', aircraft: 3, formation: 'linear', distance_m: 50, speed_m_s: 6, height_m: 25, pilot: 'drawn:300', missions: [],
    }));
  });
});

describe('the check of the set-up', () => {
  it('names what an aircraft has otherwise than most of its swarm', () => {
    const wedge: Setup = { ...LINEAR, formation: 'wedge' };
    const other: Setup = { ...LINEAR, leader: ids[2] ?? '', formation: 'circle' };
    const cleared = { ...LINEAR, height_m: null } as Setup;
    expect(differences(wedge, [LINEAR, wedge, cleared])).toEqual(['formation wedge, most have linear']);
    expect(differences(other, [LINEAR, LINEAR, other])).toEqual([]);
    expect(differences({ protocol: 'mission', speed_m_s: 4 }, [LINEAR, LINEAR, { protocol: 'mission', speed_m_s: 4 }])).toEqual(['protocol mission, most have muscop']);
    const fleet = stateOf([LINEAR, wedge, LINEAR].map((setup, index) => aircraft(index, { flight_setup: { source: 'operator', setup } }))).aircraft;
    const row = checkTable(fleet, new Map(), new Map()).rows.find(({ check }) => check === 'flight set-up');
    expect(row?.cells.map(({ state }) => state)).toEqual(['passed', 'warning', 'passed']);
  });
});
