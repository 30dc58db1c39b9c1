// @vitest-environment jsdom
import { cleanup, render, screen } from '@testing-library/svelte';
import { afterEach, describe, expect, it } from 'vitest';
import type { RadioListening } from '../api/model';
import { FleetConsole } from '../fleet/console.svelte';
import { flying, stateOf } from '../fleet/samples';
import OverviewPanel from './OverviewPanel.svelte';

afterEach(cleanup);

function shown(listening?: RadioListening) {
  const fleet = new FleetConsole();
  fleet.fleet = stateOf([flying(1), flying(2)], listening ? { listening } : {});
  render(OverviewPanel, { fleet });
}

describe('the figures of the swarm', () => {
  it('say that no aircraft reports the wind, and nothing of a radio that is not listened to', () => {
    shown();
    expect(screen.getByTestId('wind').textContent).toBe('Wind–no aircraft reports it');
    expect(screen.queryByTestId('listening')).toBeNull();
  });

  it('have what the radio receives, what was refused, and why a sender is not followed', () => {
    const one = { id: '0000000000000003', address: '10.0.0.3', problem: 'connection refused' };
    shown({ radio: 'wlan0:14600', datagrams: 40, received: 3, unanswered: [one], refused: [{ reason: 'fleet_tag', count: 7 }] });
    const text = screen.getByTestId('listening').textContent;
    for (const part of ['Radio wlan0:14600', '3 aircraft', 'refused: 7 fleet tag', '0000000000000003 at 10.0.0.3 is received and not followed: connection refused']) expect(text).toContain(part);
    cleanup();
    shown({ radio: 'wlan0:14600', datagrams: 0, received: 0, unanswered: [], refused: [], problem: 'radio wlan0:14600: found no such interface' });
    expect(screen.getByTestId('listening').textContent).toContain('radio wlan0:14600: found no such interface');
  });
});
