/** The fence that is drawn or was opened, before it is sent, and what the aircraft hold. */
import type { FenceArea, FleetRegions, RallyPoint, Region } from '../api/model';
import type { Place } from '../plan/draft';

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

  readonly points: number = $derived(this.areas.reduce((sum, area) => sum + (area.shape === 'polygon' ? area.corners.length : 1), 0));

  draw(): void {
    this.corners = [];
  }

  click({ latitude_deg, longitude_deg }: Place): void {
    if (this.corners !== undefined) this.corners = [...this.corners, { latitude_deg, longitude_deg }];
  }

  undo(): void {
    this.corners = this.corners?.slice(0, -1);
  }

  /** The polygon is one of the areas; one of fewer than three corners is dropped. */
  end(): void {
    const corners = this.corners ?? [];
    this.corners = undefined;
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
    const held = `${state.fence.length} areas, ${state.rally?.length ?? 0} rally points`;
    const outside = state.finding?.startsWith('found') ?? false;
    return { id, text: state.finding ? `${held}; ${state.finding}` : held, level: outside ? 'bad' : 'good' };
  });
}

/** How many aircraft hold another fence than they should, or could not be asked. */
export const drifted = (fleet: FleetRegions | undefined): number => fleet?.vehicles.filter(({ differs, state }) => (differs?.length ?? 0) > 0 || (state?.problems?.length ?? 0) > 0).length ?? 0;
