// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { FleetParameters, Parameter } from '../api/model';
import { FleetConsole } from '../fleet/console.svelte';
import { fenceSwitch } from '../fleet/fence-switch';
import { aircraft, stateOf } from '../fleet/samples';
import { trackSpeed, trackSpeedWrite } from '../plan/track-speed';
import FenceEnable from './FenceEnable.svelte';
import FlightSpeed from './FlightSpeed.svelte';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const parameter = (name: string, value: number | null, detail = ''): Parameter => ({ name, value, detail });
const ids = [0, 1, 2].map((index) => aircraft(index).status?.id ?? '');

/** A ground service whose aircraft hold these parameters, set what they are sent, and refuse as they are told to. */
function service(held: Record<string, Parameter[]>, refuses: Record<string, string> = {}) {
  const sent: unknown[] = [];
  vi.stubGlobal('fetch', async (path: string, init?: RequestInit) => {
    if (path.startsWith('/api/v1/fleet/aircraft?')) {
      const id = new URL(path, 'http://a').searchParams.get('vehicle') ?? '';
      const one = aircraft(ids.indexOf(id));
      if (!held[id] || !one.status) return Response.json({ code: 'not_found', message: 'no status' }, { status: 404 });
      return Response.json({ ...one, status: { ...one.status, flight_controller: { ...one.status.flight_controller, parameters: held[id] } } });
    }
    const body = JSON.parse(String(init?.body)) as { vehicles: { vehicle: string; parameters: { name: string; value: number }[] }[] };
    sent.push(body.vehicles);
    const vehicles = body.vehicles.map(({ vehicle: id, parameters }) => {
      if (refuses[id]) return { id, problem: refuses[id] };
      for (const { name, value } of parameters) held[id] = [...(held[id] ?? []).filter((one) => one.name !== name), parameter(name, value)];
      return { id, progress: { work: 'none', received: 0, revision: 1, outcomes: parameters.map(({ name, value }) => ({ name, value, effect: 'set' })) } };
    });
    return Response.json({ vehicles } as FleetParameters);
  });
  const fleet = new FleetConsole();
  fleet.fleet = stateOf([aircraft(0), aircraft(1), aircraft(2)]);
  fleet.live = true;
  return { fleet, sent };
}

const fence = (enable: number, type: number, auto?: number) => [parameter('FENCE_ENABLE', enable), parameter('FENCE_TYPE', type), ...(auto === undefined ? [] : [parameter('FENCE_AUTOENABLE', auto)])];

describe('whether the fence acts', () => {
  it('is told from what each aircraft reports', () => {
    const shown = (parameters: Parameter[] | undefined, hasAreas = false) => {
      const { isOn, text, toEnable, toDisable } = fenceSwitch(parameters, hasAreas);
      return [isOn, text, toEnable.map(({ name, value }) => `${name} ${value}`).join(), toDisable.map(({ name, value }) => `${name} ${value}`).join()];
    };
    expect(shown(fence(1, 7), true)).toEqual([true, 'is on', '', 'FENCE_ENABLE 0']);
    expect(shown(fence(0, 7))).toEqual([false, 'is off (FENCE_ENABLE 0)', 'FENCE_ENABLE 1', '']);
    expect(shown(fence(0, 3), true)).toEqual([false, 'is off (FENCE_ENABLE 0), and not for polygons and circles (FENCE_TYPE 3)', 'FENCE_ENABLE 1,FENCE_TYPE 7', '']);
    expect(shown(fence(1, 3), false)[2]).toBe('');
    expect(shown(fence(0, 7, 1))).toEqual([true, 'is switched on by itself (FENCE_AUTOENABLE 1)', '', 'FENCE_AUTOENABLE 0']);
    expect(shown([])).toEqual([undefined, 'FENCE_ENABLE: not read yet', '', '']);
    expect(shown([parameter('FENCE_ENABLE', null, 'this autopilot does not have it')])[1]).toBe('FENCE_ENABLE: this autopilot does not have it');
  });

  it('is shown for each, and set where it is off', { timeout: 20_000 }, async () => {
    const refused = 'found armed motors, expected an aircraft on the ground';
    const [first, second, third] = ids as [string, string, string];
    const { fleet, sent } = service({ [first]: fence(0, 7), [second]: fence(0, 3), [third]: fence(1, 7) }, { [second]: refused });
    const region = { work: 'none' as const, fence: [{ shape: 'circle' as const, inclusion: true, centre: { latitude_deg: 39, longitude_deg: 0 }, radius_m: 90 }], rally: [] };
    fleet.region.held = { vehicles: ids.map((id) => ({ id, state: region })) };
    render(FenceEnable, { fleet });
    await waitFor(() => expect(screen.getByTestId('fence-acts').textContent).toBe('The fence acts on 1 of 3 aircraft.'));
    await fireEvent.click(screen.getByTestId('enable-fence'));
    await waitFor(() => expect(screen.getByTestId('fence-acts').textContent).toBe('The fence acts on 2 of 3 aircraft.'));
    expect(sent).toEqual([[
      { vehicle: first, parameters: [{ name: 'FENCE_ENABLE', value: 1 }] },
      { vehicle: second, parameters: [{ name: 'FENCE_ENABLE', value: 1 }, { name: 'FENCE_TYPE', value: 7 }] },
    ]]);
    expect(screen.getAllByTestId('fence-switch')[1]?.textContent).toContain(refused);
    await fireEvent.click(screen.getByTestId('disable-fence'));
    await waitFor(() => expect(screen.getByTestId('fence-acts').textContent).toBe('The fence acts on 0 of 3 aircraft.'));
  });
});

it('what a daemon has not read yet is asked for again', { timeout: 20_000 }, async () => {
  const [first, second, third] = ids as [string, string, string];
  const held: Record<string, Parameter[]> = { [first]: [], [second]: fence(1, 7), [third]: fence(0, 7) };
  const { fleet } = service(held);
  render(FenceEnable, { fleet });
  await waitFor(() => expect(screen.getAllByTestId('fence-switch')[0]?.textContent).toContain('FENCE_ENABLE: not read yet'));
  held[first] = fence(1, 7);
  await waitFor(() => expect(screen.getByTestId('fence-acts').textContent).toBe('The fence acts on 2 of 3 aircraft.'), { timeout: 15_000 });
});

describe('the speed of a swarm', () => {
  it('is read in cm/s under either name, and written in the unit of the flight controller', () => {
    expect(trackSpeed([parameter('WPNAV_SPEED', 750)])).toEqual({ name: 'WPNAV_SPEED', speedMS: 7.5 });
    expect(trackSpeed([parameter('WP_SPD', 750)])).toEqual({ name: 'WP_SPD', speedMS: 7.5 });
    expect(trackSpeed([parameter('WPNAV_SPEED', null)])).toBeUndefined();
    expect(trackSpeedWrite('WPNAV_SPEED', 7.256)).toEqual({ name: 'WPNAV_SPEED', value: 726 });
    expect(trackSpeedWrite('WP_SPD', 7.5)).toEqual({ name: 'WP_SPD', value: 7.5 });
  });

  it('is set on all that tell one, and said where they differ', { timeout: 20_000 }, async () => {
    const [first, second] = ids as [string, string];
    const { fleet, sent } = service({ [first]: [parameter('WPNAV_SPEED', 500)], [second]: [parameter('WP_SPD', 1000)] });
    render(FlightSpeed, { fleet });
    await waitFor(() => expect(screen.getByTestId('track-speeds').textContent).toBe('UAV 0 5.0\u202fm/s, UAV 1 10.0\u202fm/s, UAV 2 unknown'));
    const field = screen.getByTestId('track-speed') as HTMLInputElement;
    await fireEvent.change(field, { target: { value: '21' } });
    expect((screen.getByTestId('set-track-speed') as HTMLButtonElement).disabled).toBe(true);
    await fireEvent.change(field, { target: { value: '8' } });
    await fireEvent.click(screen.getByTestId('set-track-speed'));
    await waitFor(() => expect(sent).toHaveLength(1));
    expect(sent[0]).toEqual([
      { vehicle: first, parameters: [{ name: 'WPNAV_SPEED', value: 800 }] },
      { vehicle: second, parameters: [{ name: 'WP_SPD', value: 8 }] },
    ]);
  });
});
