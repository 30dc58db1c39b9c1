import { describe, expect, it } from 'vitest';
import type { FleetAircraft, LinkState } from '../api/model';
import { byId } from './avoidance';
import { absences, absenceText, excludeBlocked, notWaitedFor } from './members';
import { aircraft, stateOf, status } from './samples';

type Absent = { id: string; silent: boolean; leaves?: string; excluded_by?: string };

function member(index: number, slot: number | null, absent: Absent[] = [], link: LinkState = 'up'): FleetAircraft {
  const swarm = { leader: index === 1, leader_id: status(1).id, size: 3, formation: 'linear', slot, absent };
  return aircraft(index, { swarm }, { link });
}

const id = (index: number) => status(index).id;
const gone: Absent = { id: id(3), silent: false, leaves: 'holding', excluded_by: id(1) };

describe('members that a swarm does not wait for', () => {
  it('is put together from the members in contact', () => {
    const fleet = stateOf([
      member(1, 0, [gone]),
      member(2, 1, [{ id: id(3), silent: true }]),
      member(3, 2, [{ ...gone, leaves: undefined as never }], 'lost'),
    ]).aircraft;
    const found = absences(fleet);
    expect([...found.keys()]).toEqual([id(3)]);
    expect(found.get(id(3))).toEqual({ excluded: 1, silent: 1, leaves: 'holding', asked: 2 });
    const text = absenceText({ excluded: 1, silent: 1, leaves: 'holding', asked: 2 });
    expect(text).toBe('excluded by the operator, known to 1 of 2; leaves the swarm: holding; not received by 1 of 2');
  });

  it('is named, with the member that passed it on', () => {
    const fleet = stateOf([member(1, 0, [gone]), member(2, 1, [gone]), member(3, 2)]).aircraft;
    const [one, two, three] = fleet;
    expect(one && notWaitedFor(one, byId(fleet))).toBe('UAV 3 (excluded by the operator, holding)');
    expect(two && notWaitedFor(two, byId(fleet))).toBe('UAV 3 (excluded by the operator, reported by UAV 1, holding)');
    expect(three && notWaitedFor(three, byId(fleet))).toBe('');
  });
});

describe('excluding', () => {
  const blocked = (list: FleetAircraft[], index: number) => {
    const fleet = stateOf(list).aircraft;
    const one = fleet[index];
    return one === undefined ? undefined : excludeBlocked(one, fleet, absences(fleet));
  };

  it('gives the reason why it cannot be', () => {
    expect(blocked([aircraft(1)], 0)).toMatch(/flies for itself/);
    expect(blocked([member(1, null), member(2, null)], 0)).toMatch(/No swarm flies/);
    expect(blocked([member(1, null), member(2, 0)], 0)).toMatch(/no slot/);
    expect(blocked([member(1, 0), member(2, 1, [], 'lost')], 0)).toMatch(/Nobody else/);
    expect(blocked([member(1, 0), member(2, 1)], 0)).toBe('');
    expect(blocked([member(1, 0), member(2, 1, [], 'lost')], 1), 'one that is out of contact can be').toBe('');
  });

  it('is offered again until all in contact know', () => {
    const of = { ...gone, id: id(2) };
    expect(blocked([member(1, 0, [of]), member(2, 1)], 1)).toBe('');
    expect(blocked([member(1, 0, [of]), member(2, 1, [of])], 1)).toMatch(/is excluded/);
  });
});
