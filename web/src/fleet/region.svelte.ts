/** The fence that is drawn or was opened, before it is sent, and what the aircraft hold. */
import type { FenceArea, FleetRegions, RallyPoint, Region } from '../api/model';
import type { Place } from '../plan/draft';
import { plural } from './format';

/** Corners and centres that a flight controller counts. */
export const POINTS_MAX = 127;

export class RegionDraft {
  areas = $state.raw<readonly FenceArea[]>([]);
  rally = $state.raw<readonly RallyPoint[]>([]);
  /** The aircraft's own, as they were read last. */
  held = $state.raw<FleetRegions | undefined>(undefined);
  /** Corners of the polygon that is being drawn; undefined while none is. */
  corners = $state.raw<readonly Place[] | undefined>(undefined);
  inclusion = $state(true);
  /** Whether a click on the map is a rally point. */
  placing = $state(false);
  /** Of the rally points that are placed, above home. */
  rallyHeightM = $state(15);

  /** Whether a click on the map is drawn. */
  readonly isDrawing: boolean = $derived(this.corners !== undefined || this.placing);
  readonly points: number = $derived(this.areas.reduce((sum, area) => sum + (area.shape === 'polygon' ? area.corners.length : 1), 0));

  draw(): void {
    [this.corners, this.placing] = [[], false];
  }

  place(): void {
    [this.corners, this.placing] = [undefined, true];
  }

  click({ latitude_deg, longitude_deg }: Place): void {
    const at = { latitude_deg, longitude_deg };
    if (this.corners !== undefined) this.corners = [...this.corners, at];
    else if (this.placing) this.rally = [...this.rally, { ...at, height_m: this.rallyHeightM }];
  }

  /** What can be moved on the map: the corners, centres and rally points that are drawn, and how. */
  get grips(): { at: Place; move: (to: Place) => void }[] {
    const areas = this.areas.flatMap((area, index) => {
      const put = (changed: FenceArea) => (this.areas = this.areas.with(index, changed));
      if (area.shape === 'circle') return [{ at: area.centre, move: (centre: Place) => put({ ...area, centre }) }];
      return area.corners.map((at, corner) => ({
        at, move: (to: Place) => put({ ...area, corners: area.corners.with(corner, to) }),
      }));
    });
    const rally = this.rally.map((at, index) => ({
      at, move: (to: Place) => (this.rally = this.rally.with(index, { ...to, height_m: at.height_m })),
    }));
    const sketch = (this.corners ?? []).map((at, index) => ({
      at, move: (to: Place) => (this.corners = this.corners?.with(index, to)),
    }));
    return [...areas, ...rally, ...sketch];
  }

  undo(): void {
    if (this.placing) this.rally = this.rally.slice(0, -1);
    else this.corners = this.corners?.slice(0, -1);
  }

  /** The polygon is one of the areas; one of fewer than three corners is dropped. */
  end(): void {
    const corners = this.corners ?? [];
    [this.corners, this.placing] = [undefined, false];
    if (corners.length >= 3) this.areas = [...this.areas, { shape: 'polygon', inclusion: this.inclusion, corners: [...corners] }];
  }

  circle({ latitude_deg, longitude_deg }: Place, radius_m: number): void {
    this.areas = [...this.areas, { shape: 'circle', inclusion: this.inclusion, centre: { latitude_deg, longitude_deg }, radius_m }];
  }

  remove(index: number): void {
    this.areas = this.areas.filter((_, at) => at !== index);
  }

  /** What a file holds replaces what was drawn, list by list. */
  open({ fence, rally }: Region): void {
    if (fence) this.areas = fence;
    if (rally) this.rally = rally;
  }

  /** What is sent: the lists that have something in them. */
  get region(): Region {
    return { ...(this.areas.length > 0 ? { fence: [...this.areas] } : {}), ...(this.rally.length > 0 ? { rally: [...this.rally] } : {}) };
  }
}

export const isIdle = ({ vehicles }: FleetRegions): boolean => vehicles.every(({ state }) => state == null || state.work === 'none');

/** A line for each aircraft: what it holds, or what stands against it. */
export function lines({ vehicles }: FleetRegions): { id: string; text: string; level: 'good' | 'bad' | 'busy' }[] {
  return vehicles.map(({ id, state, problem, differs }) => {
    const wrong = [...(problem ? [problem] : []), ...(state?.problems ?? []), ...(differs ?? [])];
    if (wrong.length > 0) return { id, text: wrong.join('; '), level: 'bad' };
    if (state == null) return { id, text: 'no answer', level: 'bad' };
    if (state.work !== 'none') return { id, text: state.work === 'reading' ? 'is reading' : 'is being sent', level: 'busy' };
    if (state.fence == null) return { id, text: 'not read yet', level: 'busy' };
    const held = `${plural(state.fence.length, 'area', 'areas')}, ${plural(state.rally?.length ?? 0, 'rally point', 'rally points')}`;
    const outside = state.finding?.startsWith('found') ?? false;
    return { id, text: state.finding ? `${held}; ${state.finding}` : held, level: outside ? 'bad' : 'good' };
  });
}

/** How many aircraft hold another fence than they should, or could not be asked. */
export const drifted = (fleet: FleetRegions | undefined): number => fleet?.vehicles.filter(({ differs, state }) => (differs?.length ?? 0) > 0 || (state?.problems?.length ?? 0) > 0).length ?? 0;
