/** Whether ArduCopter's fence acts, by the parameters that an aircraft reports, and which values would make it act. */
import type { Parameter } from '../api/model';

/** Bit of FENCE_TYPE: polygons and circles of the panel *Fence*. */
const AREAS = 4;

export interface FenceSwitch {
  /** Whether it acts, or will from take-off or arming on; undefined where FENCE_ENABLE is not known. */
  readonly isOn: boolean | undefined;
  readonly text: string;
  /** What enables it; empty where nothing has to change. */
  readonly toEnable: readonly Write[];
  /** What disables it; empty where it is off. */
  readonly toDisable: readonly Write[];
}

interface Write {
  readonly name: string;
  readonly value: number;
}

/** `hasAreas`: the aircraft holds polygons or circles, which FENCE_TYPE has to name too. */
export function fenceSwitch(parameters: readonly Parameter[] | undefined, hasAreas: boolean): FenceSwitch {
  const value = (name: string) => parameters?.find((one) => one.name === name)?.value ?? undefined;
  const [enable, type, auto] = [value('FENCE_ENABLE'), value('FENCE_TYPE'), value('FENCE_AUTOENABLE') ?? 0];
  if (enable === undefined) {
    const why = parameters?.find(({ name }) => name === 'FENCE_ENABLE')?.detail;
    return { isOn: undefined, text: `FENCE_ENABLE: ${why || 'not read yet'}`, toEnable: [], toDisable: [] };
  }
  const lacksAreas = hasAreas && type !== undefined && (type & AREAS) === 0;
  const isOn = enable !== 0 || auto > 0;
  const when = enable === 0 && auto > 0 ? `is switched on by itself (FENCE_AUTOENABLE ${auto})` : enable === 0 ? 'is off (FENCE_ENABLE 0)' : 'is on';
  const toEnable = [
    ...(isOn ? [] : [{ name: 'FENCE_ENABLE', value: 1 }]), ...(lacksAreas ? [{ name: 'FENCE_TYPE', value: type | AREAS }] : []),
  ];
  const toDisable = [...(enable === 0 ? [] : [{ name: 'FENCE_ENABLE', value: 0 }]), ...(auto > 0 ? [{ name: 'FENCE_AUTOENABLE', value: 0 }] : [])];
  return { isOn, text: lacksAreas ? `${when}, and not for polygons and circles (FENCE_TYPE ${type})` : when, toEnable, toDisable };
}
