// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Bundle, FleetBundle } from '../api/model';
import { clockText, size } from '../fleet/bundle';
import { FleetConsole } from '../fleet/console.svelte';
import { aircraft, stateOf } from '../fleet/samples';
import BundlePanel from './BundlePanel.svelte';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const file = (ahead_of_gnss_ms: number | undefined, stepped_ms = 0) => ({
  name: '000001-01.mcap', kind: 'flight' as const, bytes: 1_500_000, sha256: '0'.repeat(64),
  clock: { utc_of_agent_time_zero_us: 1, stepped_ms, ...(ahead_of_gnss_ms === undefined ? {} : { ahead_of_gnss_ms }) },
});
const one = { folder: 'aircraft-1', address: 'http://10.0.0.7:8080', id: '1', name: 'one', version: '9', protocol: 'muscop', files: [file(-12.34)], missing: [] };
const gone = { folder: 'aircraft-2', address: 'http://10.0.0.8:8080', name: '', version: '', protocol: '', files: [], missing: [{ what: 'aircraft', why: 'no route to it' }] };
const bundle: Bundle = { format: 1, version: '9', experiment: 'gusts', begun: '2026-09-12T10:00:00Z', complete: false, aircraft: [one, gone] };

/** A ground service that answers these, one after the other, and what it was asked. */
function service(answers: FleetBundle[], refused?: string) {
  const asked: { method: string; body: unknown }[] = [];
  vi.stubGlobal('fetch', async (_: string, init: RequestInit) => {
    asked.push({ method: init.method ?? 'GET', body: init.body === undefined ? undefined : JSON.parse(String(init.body)) });
    if (refused && init.method === 'POST') return Response.json({ code: 'conflict', message: refused }, { status: 409 });
    return Response.json(answers.length > 1 ? answers.shift() : answers[0]);
  });
  const fleet = new FleetConsole();
  fleet.fleet = stateOf([aircraft(1)]);
  fleet.live = true;
  render(BundlePanel, { fleet });
  return asked;
}

describe('the panel of logs', () => {
  it('collects at one click, shows how far it is, and names clocks and what is missing', async () => {
    const begun: FleetBundle = { running: true, receiving: [{ aircraft: 'one', file: '000001-01.mcap', held_bytes: 500_000, bytes: 1_500_000 }] };
    const asked = service([{ running: false }, begun, { running: false, folder: '/data/gusts/20260912T100000Z', bundle }]);
    await waitFor(() => expect((screen.getByTestId('bundle-collect') as HTMLButtonElement).disabled).toBe(false));
    await fireEvent.input(screen.getByTestId('bundle-experiment'), { target: { value: 'gusts' } });
    await fireEvent.click(screen.getByTestId('bundle-collect'));
    await waitFor(() => expect(screen.getByTestId('bundle-receiving').textContent).toContain('one: 000001-01.mcap, 33 % of 1.5 MB'));
    const list = await screen.findByTestId('bundle-aircraft', {}, { timeout: 5_000 });
    expect(asked[1]).toEqual({ method: 'POST', body: { experiment: 'gusts', hours: 24, autopilot_logs: 1, resume: false } });
    expect(list.textContent).toContain('1 file, 1.5 MB');
    expect(list.textContent).toContain('GNSS time; its computer 12.3 ms behind');
    expect(list.textContent).toContain('http://10.0.0.8:8080');
    expect(list.textContent).toContain('aircraft: no route to it');
    expect(screen.getByTestId('bundle-folder').textContent).toContain('Something is missing: /data/gusts/20260912T100000Z');
    await fireEvent.click(screen.getByTestId('bundle-resume'));
    await waitFor(() => expect(asked.at(-1)?.body).toMatchObject({ resume: true }));
  });

  it('says why nothing is collected', async () => {
    service([{ running: false }], 'bundle: found no folder for bundles, expected one (wingbeat ground --bundles)');
    await waitFor(() => expect((screen.getByTestId('bundle-collect') as HTMLButtonElement).disabled).toBe(false));
    await fireEvent.click(screen.getByTestId('bundle-collect'));
    expect((await screen.findByTestId('bundle-problem')).textContent).toContain('found no folder for bundles');
  });

  it('tells clocks apart', () => {
    expect(clockText({ ...one, files: [file(3_600_000, -3_600_000)] })).toBe('GNSS time; its computer 3600000.0 ms ahead, set by -3600000 ms in flight');
    expect(clockText({ ...one, files: [file(undefined)] })).toBe('its computer’s clock');
    expect(clockText(gone)).toBe('clock unknown');
    expect([size(7), size(1_200), size(2_000_000)]).toEqual(['7 B', '1.2 kB', '2.0 MB']);
  });
});
