// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { FleetRegions, RegionState } from '../api/model';
import { FleetConsole } from '../fleet/console.svelte';
import { RegionDraft, drifted, lines } from '../fleet/region.svelte';
import { aircraft, stateOf } from '../fleet/samples';
import { regionFeatures } from '../map/region';
import FencePanel from './FencePanel.svelte';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const at = (latitude_deg: number, longitude_deg: number) => ({ latitude_deg, longitude_deg });
const CORNERS = [at(39.48, -0.35), at(39.48, -0.34), at(39.49, -0.34)];
const HELD: RegionState = { work: 'none', fence: [{ shape: 'polygon', inclusion: true, corners: CORNERS }], rally: [] };

/** A ground service, and what it was asked. */
function service(answer: FleetRegions, refused = '') {
  const asked: { method: string; path: string; body: unknown }[] = [];
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    asked.push({ method: init.method ?? 'GET', path, body: init.body === undefined ? undefined : JSON.parse(String(init.body)) });
    if (refused && init.method === 'PUT') return Response.json({ code: 'bad_request', message: refused }, { status: 400 });
    return Response.json(answer);
  });
  const fleet = new FleetConsole();
  fleet.fleet = stateOf([aircraft(0), aircraft(1)]);
  fleet.live = true;
  render(FencePanel, { fleet });
  return { asked, fleet };
}

const ids = [0, 1].map((index) => aircraft(index).status?.id ?? '');

describe('the panel of the fence', () => {
  it('sends the polygon whose corners were clicked to all, and shows what each holds', async () => {
    const { asked, fleet } = service({ vehicles: [{ id: ids[0] ?? '', state: HELD }, { id: ids[1] ?? '', state: HELD, differs: ['fence: found 1 areas, expected 2'] }] });
    const outcomes = await screen.findByTestId('region-outcomes');
    expect(outcomes.textContent).toContain('1 area, 0 rally points');
    expect(outcomes.textContent).toContain('found 1 areas, expected 2');
    expect(drifted(fleet.region.held)).toBe(1);
    await fireEvent.click(screen.getByTestId('draw-fence'));
    for (const corner of CORNERS) fleet.region.click(corner);
    await fireEvent.click(await screen.findByTestId('end-fence'));
    await waitFor(() => expect(screen.getByTestId('fence-areas').textContent).toContain('a polygon of 3 corners'));
    await waitFor(() => expect((screen.getByTestId('send-region') as HTMLButtonElement).disabled).toBe(false));
    await fireEvent.click(screen.getByTestId('send-region'));
    await waitFor(() => expect(asked.find(({ method }) => method === 'PUT')?.body).toEqual({ vehicles: [], region: { fence: HELD.fence } }));
  });

  it('says why nothing was sent, and clears both lists', async () => {
    const { asked } = service({ vehicles: [] }, 'fence[0]: found 2 corners, expected at least 3');
    await screen.findByTestId('region-outcomes');
    await fireEvent.click(screen.getByTestId('clear-region'));
    expect((await screen.findByTestId('region-problem')).textContent).toContain('found 2 corners');
    expect(asked.find(({ method }) => method === 'PUT')?.body).toEqual({ vehicles: [], region: { fence: [], rally: [] } });
  });

  it('draws a fence that many hold once, and what is drawn over it', () => {
    const draft = new RegionDraft();
    draft.inclusion = false;
    draft.circle(at(39.48, -0.34), 30);
    draft.draw();
    draft.click(CORNERS[0] ?? at(0, 0));
    draft.click(CORNERS[1] ?? at(0, 0));
    const held = { vehicles: ids.map((id) => ({ id, state: HELD })) };
    const { areas, rally, corners } = draft;
    const kinds = regionFeatures({ areas, rally, corners, held, grips: draft.grips.map(({ at }) => at) }).features.map(({ properties }) => properties?.['kind'] as string);
    // The circle's centre and the two corners can be moved.
    expect(kinds).toEqual(['inclusion', 'exclusion', 'sketch', 'corner', 'corner', 'corner']);
    draft.end();
    expect(draft.areas).toHaveLength(1);
  });

  it('moves what is drawn, and places rally points', () => {
    const draft = new RegionDraft();
    draft.open({ fence: HELD.fence ?? [] });
    draft.circle(at(39.48, -0.34), 30);
    draft.rallyHeightM = 20;
    draft.place();
    draft.click(at(39.485, -0.345));
    draft.click(at(39.486, -0.345));
    draft.undo();
    draft.end();
    draft.click(at(1, 1));
    expect(draft.grips.map((grip) => grip.at.latitude_deg)).toEqual([39.48, 39.48, 39.49, 39.48, 39.485]);
    draft.grips[2]?.move(at(39.5, -0.34));
    // A drag has many steps.
    draft.grips[2]?.move(at(39.6, -0.34));
    draft.grips[3]?.move(at(39.47, -0.34));
    draft.grips[4]?.move(at(39.45, -0.345));
    expect(draft.region).toEqual({
      fence: [
        { shape: 'polygon', inclusion: true, corners: [CORNERS[0], CORNERS[1], at(39.6, -0.34)] },
        { shape: 'circle', inclusion: true, centre: at(39.47, -0.34), radius_m: 30 },
      ],
      rally: [{ ...at(39.45, -0.345), height_m: 20 }],
    });
    expect(HELD.fence?.[0]).toEqual({ shape: 'polygon', inclusion: true, corners: CORNERS });
  });

  it('calls a route that leaves the fence bad', () => {
    const finding = 'found waypoint 3 outside of the fence, expected it inside';
    expect(lines({ vehicles: [{ id: 'a', state: { ...HELD, finding } }] })).toEqual([{ id: 'a', text: `1 area, 0 rally points; ${finding}`, level: 'bad' }]);
    expect(lines({ vehicles: [{ id: 'a', problem: 'found armed motors' }] })[0]?.level).toBe('bad');
  });
});
