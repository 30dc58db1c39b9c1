// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, within } from '@testing-library/svelte';
import { createRawSnippet, tick } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { FleetAircraft, FleetPicture } from '../api/model';
import { FleetConsole } from '../fleet/console.svelte';
import { aircraft, command, flying, neverSeen, stateOf, status } from '../fleet/samples';
import Actions from './Actions.svelte';
import AlarmPanel from './AlarmPanel.svelte';
import CheckPanel from './CheckPanel.svelte';
import CommandPanel from './CommandPanel.svelte';
import FleetPanel from './FleetPanel.svelte';
import HoldButton from './HoldButton.svelte';
import { HOLD_KEY_MS } from './shortcuts';
import Timeline from './Timeline.svelte';
import TopBar from './TopBar.svelte';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

function consoleOf(list: FleetAircraft[], change: Partial<FleetPicture> = {}) {
  const fleet = new FleetConsole();
  fleet.fleet = stateOf(list, change);
  fleet.live = true;
  const send = vi.spyOn(fleet, 'send').mockResolvedValue();
  return { fleet, send };
}
const address = (index: number) => aircraft(index).address;

describe('a button that is held', () => {
  const button = (disabled = false) => {
    const onheld = vi.fn();
    const children = createRawSnippet(() => ({ render: () => '<span>Start</span>' }));
    const { rerender } = render(HoldButton, { disabled, testid: 'start', onheld, children });
    return { onheld, rerender, element: screen.getByTestId('start') };
  };

  it('does nothing when it is released too early, and says why', async () => {
    const { onheld, element } = button();
    await fireEvent.pointerDown(element, { button: 0 });
    vi.advanceTimersByTime(900);
    await fireEvent.pointerUp(element);
    vi.advanceTimersByTime(5_000);
    expect(onheld).not.toHaveBeenCalled();
    expect(element.textContent).toContain('Keep it pressed for a second');
    await fireEvent.click(element);
    await fireEvent.dblClick(element);
    expect(onheld).not.toHaveBeenCalled();
  });

  it('acts once after a second, by pointer and by keyboard', async () => {
    const { onheld, element } = button();
    await fireEvent.pointerDown(element, { button: 0 });
    vi.advanceTimersByTime(3_000);
    expect(onheld).toHaveBeenCalledTimes(1);
    await fireEvent.keyDown(element, { key: 'Enter' });
    await fireEvent.keyDown(element, { key: 'Enter', repeat: true });
    vi.advanceTimersByTime(1_000);
    expect(onheld).toHaveBeenCalledTimes(2);
  });

  it('does nothing when it became impossible meanwhile, or the finger slid off', async () => {
    const { onheld, element, rerender } = button();
    await fireEvent.pointerDown(element, { button: 0 });
    await rerender({ disabled: true });
    vi.advanceTimersByTime(3_000);
    await rerender({ disabled: false });
    await fireEvent.pointerDown(element, { button: 0 });
    await fireEvent.pointerLeave(element);
    vi.advanceTimersByTime(3_000);
    expect(onheld).not.toHaveBeenCalled();
  });
});

describe('the fleet', () => {
  const ids = () => screen.getAllByTestId('aircraft-row').map(({ dataset }) => dataset['id']);

  it('has trouble on top, by how grave it is', () => {
    const low = aircraft(4, { battery: { remaining_percent: 10, voltage_v: 10 } });
    const pilot = { ...flying(3), status: { ...status(3), ...flying(3).status, engaged: false } } as FleetAircraft;
    const { fleet } = consoleOf([flying(1), flying(2), pilot, low]);
    render(FleetPanel, { fleet });
    expect(ids()).toEqual([3, 4, 1, 2].map((index) => status(index).id));
    expect(screen.getByText('No command')).toBeTruthy();
  });

  it('says of nothing that it is 0, beside a lost one least of all', () => {
    const { fleet } = consoleOf([flying(1), aircraft(2, {}, { link: 'lost' }), neverSeen(3)]);
    render(FleetPanel, { fleet });
    const summary = screen.getByLabelText('Fleet summary');
    expect(summary.textContent?.replace(/\s+/g, ' ').trim()).toBe('1 armed 1 flying 1 lost 1 never seen');
  });

  it('does not say of a landed one that it moves', () => {
    const { fleet } = consoleOf([aircraft(1, { state: 'MovingToLand', phase: 'ending' })]);
    render(FleetPanel, { fleet });
    const row = screen.getByTestId('aircraft-row');
    expect(row.textContent).toContain('Landed');
    expect(row.textContent).not.toMatch(/Moving|m\/s/);
  });

  it('folds the healthy of many into one line and a grid, each still there once', async () => {
    const many = Array.from({ length: 100 }, (_, index) => flying(index + 1));
    many[41] = aircraft(42, {}, { link: 'lost' });
    const { fleet } = consoleOf(many);
    render(FleetPanel, { fleet });
    expect(new Set(ids()).size).toBe(100);
    expect(ids()[0]).toBe(status(42).id);
    expect(screen.getByText(/99 without trouble, 99 armed/)).toBeTruthy();
    await fireEvent.click(screen.getAllByTestId('aircraft-row')[1] as HTMLElement);
    expect([...fleet.selected]).toEqual([address(1)]);
  });

  it('is walked and selected by keyboard', async () => {
    const { fleet } = consoleOf([flying(1), flying(2), flying(3)]);
    render(FleetPanel, { fleet });
    const [first] = screen.getAllByTestId('aircraft-row');
    first?.focus();
    await fireEvent.keyDown(first as HTMLElement, { key: 'ArrowDown' });
    const second = document.activeElement as HTMLElement;
    expect(second.dataset['id']).toBe(status(2).id);
    await fireEvent.keyDown(second, { key: ' ' });
    expect([...fleet.selected]).toEqual([address(2)]);
  });
});

describe('the commands', () => {
  const hold = (key: string, init: KeyboardEventInit = {}, ms = HOLD_KEY_MS) => {
    fireEvent.keyDown(window, { key, ...init });
    vi.advanceTimersByTime(ms);
    fireEvent.keyUp(window, { key, ...init });
  };

  it('Hold all is for all, whatever is selected, and at once', async () => {
    const { fleet, send } = consoleOf([flying(1), flying(2)]);
    fleet.selectOnly(address(1));
    render(Actions, { fleet });
    await fireEvent.click(screen.getByTestId('hold-all'));
    expect(send.mock.calls.map(([name, scope]) => [name, scope.kind])).toEqual([['hold', 'all']]);
    await fireEvent.click(screen.getByTestId('hold'));
    expect(send.mock.calls.at(-1)?.[1].vehicles).toEqual([status(1).id]);
  });

  it('Return of one goes at once, of several it asks, and Land always', async () => {
    const { fleet, send } = consoleOf([flying(1), flying(2)]);
    render(Actions, { fleet });
    await fireEvent.click(screen.getByTestId('return'));
    expect(send).not.toHaveBeenCalled();
    await fireEvent.click(screen.getByTestId('confirm'), { detail: 2 });
    expect(send, 'the second half of a double click is no answer').not.toHaveBeenCalled();
    await fireEvent.click(screen.getByTestId('confirm'), { detail: 1 });
    expect(send.mock.calls.map(([name, scope]) => [name, scope.kind])).toEqual([['return', 'all']]);
    fleet.selectOnly(address(2));
    await tick();
    await fireEvent.click(screen.getByTestId('return'));
    expect(send.mock.calls.at(-1)?.[1].vehicles).toEqual([status(2).id]);
    await fireEvent.click(screen.getByTestId('land'));
    expect(send).toHaveBeenCalledTimes(2);
    // A question does not wait for ever, and not for another selection.
    vi.advanceTimersByTime(10_000);
    await tick();
    expect(screen.queryByTestId('confirm')).toBeNull();
  });

  it('a key that slips ends no mission', async () => {
    const { fleet, send } = consoleOf([flying(1), flying(2)]);
    render(Actions, { fleet });
    // Nobody selected: not even when it is held.
    for (const key of ['h', 'r', 'l', 'c']) hold(key);
    expect(send).not.toHaveBeenCalled();
    fleet.selectOnly(address(1));
    await tick();
    hold('h', {}, 200);
    hold('h', { ctrlKey: true });
    hold('c');
    expect(send).not.toHaveBeenCalled();
    hold('h');
    expect(send.mock.calls.map(([name, scope]) => [name, scope.vehicles])).toEqual([['hold', [status(1).id]]]);
    hold('H', { shiftKey: true });
    expect(send.mock.calls.at(-1)?.[1].kind).toBe('all');
    fleet.prefer({ hotKeys: false });
    hold('h');
    expect(send).toHaveBeenCalledTimes(2);
    fleet.prefer({ hotKeys: true });
  });

  it('Resume and Engage go to those alone that they are for', async () => {
    const held = { ...flying(1), status: { ...(flying(1).status ?? status(1)), can_resume: true } };
    const taken = { ...flying(2), status: { ...(flying(2).status ?? status(2)), engaged: false } };
    const { fleet, send } = consoleOf([held, taken, flying(3)]);
    render(Actions, { fleet });
    await fireEvent.click(screen.getByTestId('resume-scope'));
    await fireEvent.click(screen.getByTestId('engage-scope'));
    await fireEvent.click(screen.getByTestId('confirm'), { detail: 1 });
    expect(send.mock.calls.map(([name, scope]) => [name, scope.vehicles])).toEqual([['resume', [status(1).id]], ['engage', [status(2).id]]]);
  });

  it('Recover control is behind a second action', async () => {
    const { fleet, send } = consoleOf([flying(1)]);
    render(Actions, { fleet });
    expect(screen.queryByTestId('recover_control')).toBeNull();
    await fireEvent.click(screen.getByTestId('more'));
    await fireEvent.click(screen.getByTestId('recover_control'));
    expect(send).not.toHaveBeenCalled();
    await fireEvent.click(screen.getByTestId('confirm'), { detail: 1 });
    expect(send).toHaveBeenCalledTimes(1);
  });
});

describe('what became of commands', () => {
  it('stays open where it was opened, when a newer one comes', async () => {
    const { fleet } = consoleOf([flying(1)], { commands: [command(['accepted'], { id: 'a' })] });
    render(CommandPanel, { fleet });
    const opened = () => screen.getAllByTestId('command').map((one) => (one as HTMLDetailsElement).open);
    expect(opened()).toEqual([true]);
    await fireEvent(screen.getByTestId('command'), new Event('toggle'));
    fleet.fleet = { ...fleet.fleet, commands: [...fleet.fleet.commands, command(['sending'], { id: 'b' })] };
    await tick();
    expect(opened()).toEqual([true, true]);
  });
});

describe('alarms', () => {
  it('are named, acknowledged, and counted in the badge', async () => {
    const { fleet } = consoleOf([flying(1)]);
    fleet.alarms = [
      { key: 'k', address: address(1), name: 'UAV 1', kind: 'lost', level: 'alarm', text: 'out of contact', sinceMs: 0, endedMs: undefined, acknowledged: false },
    ];
    render(TopBar, { fleet });
    render(AlarmPanel, { fleet });
    expect(screen.getByTestId('alarm-badge').textContent).toBe('1 alarm');
    expect(screen.getByTestId('alarm-badge').classList).toContain('unheard');
    await fireEvent.click(within(screen.getByTestId('alarm')).getByText('Acknowledge'));
    expect(screen.getByTestId('alarm').dataset['acknowledged']).toBe('true');
    expect(screen.getByTestId('alarm-badge').classList).not.toContain('unheard');
    expect(screen.getByTestId('alarm-badge').textContent).toBe('1 alarm');
  });
});

describe('a page that is older than the ground service', () => {
  it('says so, and can be loaded again', () => {
    const { fleet } = consoleOf([flying(1)]);
    render(TopBar, { fleet });
    expect(screen.queryByTestId('outdated')).toBeNull();
    cleanup();
    fleet.fleet = { ...fleet.fleet, version: '1.1.0' };
    render(TopBar, { fleet });
    expect(screen.getByTestId('outdated').textContent).toBe('This page is of version 1.0.0, the ground service of 1.1.0: reload');
  });
});

describe('who is in charge', () => {
  it('is said, and another console is a warning', async () => {
    const lease = (console: string) => ({ console, left_ms: 4000 });
    const { fleet } = consoleOf([aircraft(1, { lease: lease('laptop:8700') }), aircraft(2, { lease: lease('laptop:8700') })]);
    render(TopBar, { fleet });
    expect(screen.getByTestId('in-charge').textContent).toBe('this console');
    fleet.fleet = stateOf([aircraft(1, { lease: lease('tablet:8700') }), aircraft(2)]);
    await tick();
    expect(screen.getByTestId('in-charge').textContent).toBe('tablet:8700: 1');
    expect(screen.getByTestId('in-charge').classList).toContain('warn');
    fleet.live = false;
    await tick();
    expect(screen.getByTestId('in-charge').textContent).toBe('not known');
  });
});

describe('aircraft of which another console is in charge', () => {
  it('are taken over by a button that is held, and nothing else is offered to begin', async () => {
    const lease = (console: string) => ({ console, left_ms: 4000 });
    const { fleet } = consoleOf([aircraft(1, { lease: lease('tablet:8700') }), aircraft(2, { lease: lease('laptop:8700') })], { actions: { setup: true, setup_blocked: '', start: true, start_blocked: '' } });
    const answer = { vehicles: [{ id: status(1).id, problem: 'the lease: it stops' }] };
    const request = vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response(JSON.stringify(answer)));
    render(Actions, { fleet });
    expect(screen.getByTestId('elsewhere').textContent).toContain('In charge: tablet:8700.');
    expect(screen.queryByTestId('setup')).toBeNull();
    expect(screen.queryByTestId('start')).toBeNull();
    await fireEvent.pointerDown(screen.getByTestId('take-over'), { button: 0 });
    await vi.advanceTimersByTimeAsync(1_100);
    expect(request.mock.calls.map(([path, init]) => [path, init?.body])).toEqual([
      ['/api/v1/fleet/leases', JSON.stringify({ vehicles: [status(1).id] })],
    ]);
    expect(screen.getByTestId('not-taken').textContent).toBe('Not taken over: UAV 1: the lease: it stops');
    fleet.fleet = stateOf([aircraft(1, { lease: lease('laptop:8700') }), aircraft(2, { lease: lease('laptop:8700') })]);
    await tick();
    expect(screen.queryByTestId('take-over')).toBeNull();
    request.mockRestore();
  });
});

describe('the checks', () => {
  it('show every blocker at once, each with those that it is about', () => {
    const failed = (detail: string) => [{ name: 'gps', passed: false, is_required: true, detail }];
    const { fleet } = consoleOf([aircraft(1, { checks: failed('no fix') }), aircraft(2, { checks: failed('no fix') }), aircraft(3, {}, { link: 'lost' })]);
    render(CheckPanel, { fleet });
    expect(screen.getAllByTestId('blocker').map(({ textContent }) => textContent?.replace(/\s+/g, ' ').trim())).toEqual([
      'gps no fix UAV 1, UAV 2', 'contact out of contact UAV 3',
    ]);
  });
});

describe('the timeline', () => {
  it('has commands with who gave them, logs and alarms, newest first', async () => {
    const line = { at_ms: 700, id: status(1).id, time_ms: 5, severity: 'warning' as const, text: 'low voltage' };
    const { fleet } = consoleOf([flying(1)], { commands: [command(['effect_seen'], { note: 'person below' })], log: [line] });
    fleet.acknowledge();
    render(Timeline, { fleet });
    await fireEvent.click(screen.getByTestId('open-timeline'));
    const cells = (row: HTMLElement) => [...row.children].map(({ textContent }) => textContent);
    expect(screen.getAllByTestId('event').map(cells)).toEqual([
      ['22:13:20', '', '▲', 'UAV 1', 'low voltage', ''],
      ['22:13:20', '', '·', 'UAV 1', 'Land: 1 effect seen, because: person below', 'laptop:8700'],
    ]);
  });
});
