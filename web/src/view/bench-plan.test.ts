// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { FleetConsole } from '../fleet/console.svelte';
import { flying, stateOf } from '../fleet/samples';
import BenchPlan from './BenchPlan.svelte';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it('saves what was chosen, with the formation chosen from its picture', async () => {
  const place = (right_m: number) => ({ right_m, ahead_m: 0 });
  const formations = ['linear', 'wedge'].map((name) => ({ name, appearance: name, places: [place(-50), place(0), place(50)], leads: 1 }));
  const bodies: unknown[] = [];
  vi.stubGlobal('fetch', async (path: string, init?: RequestInit) => {
    if (path.startsWith('/api/v1/plan/formations?')) {
      expect(path).toMatch(/aircraft=3&distance_m=\d+$/);
      return new Response(JSON.stringify({ formations }));
    }
    bodies.push(JSON.parse(String(init?.body)));
    return new Response(JSON.stringify({ name: 'field.toml', text: 'name = "field"', notes: [] }));
  });
  const fleet = new FleetConsole();
  fleet.fleet = stateOf([flying(0), flying(1), flying(2)]);
  const mission = { name: 'field', waypoints: [] };
  fleet.planner.drawn = [{ mission, notes: [] }];
  const ondownload = vi.fn();
  render(BenchPlan, { fleet, ondownload });
  const details = screen.getByTestId('bench-plan') as HTMLDetailsElement;
  details.open = true;
  await fireEvent(details, new Event('toggle'));
  const pictures = await screen.findAllByTestId('plan-formation');
  expect(document.querySelectorAll('svg circle')).toHaveLength(6);
  await fireEvent.click(pictures[1]!);
  await fireEvent.change(screen.getByTestId('plan-spacing'), { target: { value: '40' } });
  await fireEvent.click(screen.getByTestId('save-plan'));
  await vi.waitFor(() => expect(ondownload).toHaveBeenCalledWith({ name: 'field.toml', text: 'name = "field"', notes: [] }));
  expect(bodies).toEqual([{ protocol: 'muscop', aircraft: 3, formation: 'wedge', distance_m: 40, speed_m_s: 10, missions: [mission] }]);
});
