import { describe, expect, it } from 'vitest';
import type { FleetAircraft, LinkState } from '../api/model';
import { byId } from '../fleet/avoidance';
import { aircraft, stateOf, status } from '../fleet/samples';
import { formationFeatures, placesOf, plansOf } from './formation';

const place = (index: number) => ({ latitude_deg: 39.5, longitude_deg: -0.34 + index / 1000, altitude_m: 30 });

function master(planned: boolean, count: number, link: LinkState = 'up'): FleetAircraft {
  const slots = Array.from({ length: count }, (_, slot) => ({ place: place(slot), vehicle: status(count - slot).id }));
  const plan = { distance_m: 50, heading_deg: 90, planned, slots };
  return aircraft(1, { swarm: { leader: true, leader_id: status(1).id, size: count, formation: 'linear', slot: null, plan } }, { link });
}

describe('the formation', () => {
  it('is a ring per slot and a line from the aircraft that flies there', () => {
    const { aircraft: fleet } = stateOf([master(false, 3), aircraft(2)]);
    const plans = plansOf(fleet, true);
    const colours = new Map([['http://10.0.0.1:8080', 4], ['http://10.0.0.2:8080', 5]]);
    const drawn = formationFeatures(plans, byId(fleet), new Map(), colours, new Set(['http://10.0.0.2:8080']));
    expect(drawn.slots).toBe(3);
    const rings = drawn.collection.features.filter(({ geometry }) => geometry.type === 'Point');
    // The third aircraft was never in contact: its slot is drawn, and no line.
    expect(rings.map(({ properties }) => [properties?.['slot'], properties?.['chosen']])).toEqual([
      ['slot/0/0/', false], ['slot/5/1/', true], ['slot/4/2/', false],
    ]);
    const lines = drawn.collection.features.flatMap(({ geometry }) => (geometry.type === 'LineString' ? [geometry.coordinates] : []));
    expect(lines.map(([, to]) => to?.[0])).toEqual([place(1).longitude_deg, place(2).longitude_deg]);
    expect(placesOf(plans)).toHaveLength(3);
  });

  it('has no line to a slot whose aircraft was excluded', () => {
    const { aircraft: fleet } = stateOf([master(true, 2), aircraft(2)]);
    const out = new Map([[status(2).id, { excluded: 1, silent: 0, leaves: '', asked: 1 }]]);
    const drawn = formationFeatures(plansOf(fleet, true), byId(fleet), out, new Map(), new Set());
    expect([drawn.slots, drawn.collection.features.length]).toEqual([2, 3]);
  });

  it('is drawn solid once it is planned', () => {
    const { aircraft: fleet } = stateOf([master(true, 1)]);
    const [ring] = formationFeatures(plansOf(fleet, true), new Map(), new Map(), new Map(), new Set()).collection.features;
    expect(ring?.properties?.['slot']).toBe('slot/0/0/p');
  });

  it('is not drawn from the status of an aircraft out of contact', () => {
    expect(plansOf(stateOf([master(true, 2, 'lost')]).aircraft, true)).toEqual([]);
    expect(plansOf(stateOf([master(true, 2)]).aircraft, false)).toEqual([]);
    expect(plansOf(stateOf([master(false, 0)]).aircraft, true)).toEqual([]);
  });

  it('has a hundred places', () => {
    const { aircraft: fleet } = stateOf([master(true, 100), ...Array.from({ length: 99 }, (_, index) => aircraft(index + 2))]);
    const drawn = formationFeatures(plansOf(fleet, true), byId(fleet), new Map(), new Map(), new Set());
    expect([drawn.slots, drawn.collection.features.length]).toEqual([100, 200]);
  });
});
