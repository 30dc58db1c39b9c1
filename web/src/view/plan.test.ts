// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { FLEET_MISSION, MISSION_FILES } from '../api/missions';
import type { FleetAircraft, MissionUpload, PlanDraft, PlanPreview } from '../api/model';
import { MISSION_EXPORT, PLAN_PREVIEW } from '../api/plan';
import { FleetConsole } from '../fleet/console.svelte';
import { aircraft, stateOf, status } from '../fleet/samples';
import { FILE_BYTES_MAX } from '../plan/planner.svelte';
import PlanPanel from './PlanPanel.svelte';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const at = (north: number) => ({ latitude_deg: 39.48 + north / 111_195, longitude_deg: -0.34 });
const mission: MissionUpload = { name: 'field', waypoints: [at(10), at(50), at(90)].map((place) => ({ ...place, height_m: 20 })), end: { kind: 'land' } };
const clear: PlanPreview = { problems: [], notes: [], flights: [{ vehicle: status(1).id, route: [], distance_m: 12, length_m: 100, duration_s: 90 }] };
const alone = (index: number): FleetAircraft => aircraft(index, { protocol: 'mission', swarm: null });

/** The ground service; `answers` by path, a refusal is a string. */
function groundOf(answers: Record<string, (body: never) => unknown>) {
  const asked: { path: string; body: unknown }[] = [];
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    const body = JSON.parse(String(init.body)) as never;
    asked.push({ path, body });
    const answer = answers[path]?.(body) ?? `no answer for ${path}`;
    return typeof answer === 'string' ? Response.json({ code: 'bad_request', message: answer }, { status: 400 }) : Response.json(answer);
  });
  return { asked, to: (path: string) => asked.filter((one) => one.path === path).map(({ body }) => body) };
}

function panelOf(list: FleetAircraft[]) {
  const fleet = new FleetConsole();
  fleet.fleet = stateOf(list);
  fleet.live = true;
  fleet.panel = 'plan';
  render(PlanPanel, { fleet });
  return fleet;
}

const openFile = (...files: File[]) => fireEvent.change(screen.getByTestId('mission-files'), { target: { files } });
const send = () => screen.getByTestId('give-missions') as HTMLButtonElement;

describe('a plan', () => {
  it('is drawn, compared with the aircraft, and only then sent, to be seen sent', async () => {
    const ground = groundOf({ [PLAN_PREVIEW]: () => clear, [FLEET_MISSION]: () => ({ name: 'drawn-1', hash: '0123456789abcdef', waypoints: 2, notes: ['lands'] }) });
    const fleet = panelOf([alone(1)]);
    await fireEvent.click(screen.getByTestId('draw-route'));
    fleet.planner.click(at(10));
    await waitFor(() => expect(screen.getByTestId('plan-blocked').textContent).toContain('one waypoint, expected at least 2'));
    fleet.planner.click(at(50));
    await waitFor(() => expect(screen.getByTestId('preview').dataset['state']).toBe('clear'));
    expect(ground.to(FLEET_MISSION)).toEqual([]);
    await fireEvent.click(send());
    await waitFor(() => expect(screen.getByTestId('mission-row').dataset['state']).toBe('held'));
    const [sent] = ground.to(FLEET_MISSION) as { vehicle: string; mission: MissionUpload }[];
    expect([sent?.vehicle, sent?.mission.waypoints.length]).toEqual([status(1).id, 2]);
    expect(screen.getByTestId('mission-row').textContent).toContain('holds 012345');
    expect(fleet.planner.tool).toBeUndefined();
  });

  it('that is far away is red and cannot be sent', async () => {
    const far = 'Waypoint 1 lies 113.0 km from UAV 1, expected at most 5.0 km';
    const ground = groundOf({
      [MISSION_FILES]: () => ({ missions: [{ mission, notes: [] }] }),
      [PLAN_PREVIEW]: () => ({ ...clear, problems: [{ stops: true, text: far }] }),
    });
    panelOf([alone(1)]);
    await openFile(new File(['QGC WPL 110'], 'field.waypoints'));
    const problem = await screen.findByTestId('problem');
    expect([problem.dataset['stops'], problem.getAttribute('role')]).toEqual(['true', 'alert']);
    expect(problem.textContent).toContain(far);
    expect(send().disabled).toBe(true);
    await fireEvent.click(send());
    expect(ground.to(FLEET_MISSION)).toEqual([]);
  });

  it('cannot be sent between a change and its preview', async () => {
    groundOf({ [MISSION_FILES]: () => ({ missions: [{ mission, notes: [] }] }), [PLAN_PREVIEW]: () => clear });
    const fleet = panelOf([alone(1)]);
    await openFile(new File(['x'], 'field.plan'));
    await waitFor(() => expect(send().disabled).toBe(false));
    fleet.planner.move(0, at(500), true);
    await waitFor(() => expect(send().disabled).toBe(true));
    await waitFor(() => expect(send().disabled).toBe(false));
    expect(screen.getAllByTestId('waypoint').length).toBe(3);
  });

  it('is edited by keyboard, and undone', async () => {
    const ground = groundOf({ [PLAN_PREVIEW]: () => clear });
    const fleet = panelOf([alone(1)]);
    await fireEvent.click(screen.getByTestId('draw-route'));
    await fireEvent.click(screen.getByTestId('add-waypoint'));
    await fireEvent.click(screen.getByTestId('add-waypoint'));
    const height = screen.getByLabelText('Height of waypoint 2') as HTMLInputElement;
    await fireEvent.change(height, { target: { value: '35' } });
    expect(fleet.planner.mission?.waypoints.map(({ height_m }) => height_m)).toEqual([20, 35]);
    await fireEvent.change(height, { target: { value: '500' } });
    expect([height.getAttribute('aria-invalid'), fleet.planner.mission?.waypoints[1]?.height_m]).toEqual(['true', 35]);
    await fireEvent.change(screen.getByLabelText('Speed to waypoint 2'), { target: { value: '3.5' } });
    await fireEvent.change(screen.getByTestId('endurance'), { target: { value: '20' } });
    await waitFor(() => expect((ground.to(PLAN_PREVIEW) as PlanDraft[]).at(-1)?.endurance_s).toBe(1200));
    await fireEvent.click(screen.getByLabelText('Remove waypoint 1'));
    expect(fleet.planner.mission?.waypoints.length).toBe(1);
    await fireEvent.click(screen.getByTestId('undo'));
    expect(fleet.planner.mission?.waypoints.map(({ speed_m_s }) => speed_m_s)).toEqual([undefined, 3.5]);
  });

  it('of an area becomes lanes', async () => {
    groundOf({ [PLAN_PREVIEW]: () => clear });
    const fleet = panelOf([alone(1)]);
    await fireEvent.click(screen.getByTestId('draw-area'));
    const lay = () => screen.getByTestId('lay') as HTMLButtonElement;
    expect(lay().disabled).toBe(true);
    for (const [north, east] of [[0, 0], [200, 0], [200, 0.0012], [0, 0.0012]] as const) fleet.planner.click({ ...at(north), longitude_deg: -0.34 + east });
    await waitFor(() => expect(lay().textContent).toContain('Add 6 waypoints'));
    await fireEvent.click(lay());
    expect([fleet.planner.mission?.waypoints.length, fleet.planner.tool, fleet.planner.sketch.length]).toEqual([6, undefined, 0]);
  });

  it('of several aircraft is told apart, and each answers', async () => {
    const ground = groundOf({
      [MISSION_FILES]: ({ name }: { name: string }) => ({ missions: [{ mission: { ...mission, name }, notes: [] }] }),
      [PLAN_PREVIEW]: () => clear,
      [FLEET_MISSION]: ({ vehicle }: { vehicle: string }) => (vehicle === status(2).id ? 'the aircraft flies' : { name: 'm', hash: 'ffffffffffffffff', waypoints: 3, notes: [] }),
    });
    panelOf([alone(1), alone(2)]);
    await openFile(new File(['b'], 'm10.kml'), new File(['a'], 'm9.kml'));
    await waitFor(() => expect(send().disabled).toBe(false));
    await fireEvent.click(send());
    await waitFor(() => expect(screen.getAllByTestId('mission-row').map(({ dataset }) => dataset['state'])).toEqual(['held', 'failed']));
    const sent = ground.to(FLEET_MISSION) as { vehicle: string; mission: MissionUpload }[];
    expect(sent.map(({ vehicle, mission: { name } }) => [vehicle, name])).toEqual([[status(1).id, 'm9.kml'], [status(2).id, 'm10.kml']]);
    expect(screen.getAllByTestId('mission-row')[1]?.textContent).toContain('the aircraft flies');
  });
});

describe('a file', () => {
  it('that is too large is refused before it travels', async () => {
    const ground = groundOf({});
    panelOf([alone(1)]);
    const huge = new File([''], 'huge.kml');
    Object.defineProperty(huge, 'size', { value: 100_000_000 });
    await openFile(huge);
    expect((await screen.findByTestId('plan-problem')).textContent).toBe(`huge.kml: found 100000000 bytes, expected at most ${FILE_BYTES_MAX}`);
    expect(ground.asked).toEqual([]);
  });

  it('that is no text, or has a name that turns text around, is shown for what it is', async () => {
    const ground = groundOf({ [MISSION_FILES]: ({ name }: { name: string }) => `${name}: found "x", expected QGC WPL 110` });
    panelOf([alone(1)]);
    await openFile(new File([new Uint8Array([0x51, 0x00, 0xff])], 'a\u202egpk.txt'));
    expect((await screen.findByTestId('plan-problem')).textContent).toBe('a[U+202E]gpk.txt: found bytes that are no text, expected text in UTF-8, UTF-16 or Latin-1');
    expect(ground.asked).toEqual([]);
    await openFile(new File(['x'], 'b\u2066.txt'));
    await waitFor(() => expect(screen.getByTestId('plan-problem').textContent).toContain('b[U+2066].txt: found "x"'));
    expect(screen.getByTestId('plan-problem').querySelector('bdi')).toBeTruthy();
  });

  it('is written by the ground service, and what is not in it is said', async () => {
    const ground = groundOf({
      [MISSION_FILES]: () => ({ missions: [{ mission, notes: [] }] }), [PLAN_PREVIEW]: () => clear,
      [MISSION_EXPORT]: () => ({ name: 'field.kml', text: '<kml/>', notes: ['not in the file: how it ends'] }),
    });
    const saved: string[] = [];
    vi.stubGlobal('URL', Object.assign(URL, { createObjectURL: () => 'blob:x', revokeObjectURL: () => undefined }));
    vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) { saved.push(this.download); });
    panelOf([alone(1)]);
    await openFile(new File(['x'], 'field.plan'));
    await screen.findByTestId('export');
    await fireEvent.change(screen.getByTestId('export-format'), { target: { value: 'kml' } });
    await fireEvent.click(screen.getByTestId('export'));
    await waitFor(() => expect(saved).toEqual(['field.kml']));
    expect(ground.to(MISSION_EXPORT)).toMatchObject([{ format: 'kml', missions: [{ name: 'field' }], home: { altitude_m: 20 } }]);
    expect((await screen.findByTestId('plan-problem')).textContent).toContain('how it ends');
  });
});
