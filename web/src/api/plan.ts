/** Plans before they are sent: the ground service compares them with the aircraft, and writes the files. */
import { ask, type Answer } from './missions';
import type { FormationPictures, MissionExport, MissionExportFile, PlanDraft, PlanFile, PlanPreview } from './model';

export const PLAN_PREVIEW = '/api/v1/plan/preview';
export const MISSION_EXPORT = '/api/v1/mission-files/export';
export const PLAN_FILE = '/api/v1/plan/file';
export const FORMATIONS = '/api/v1/plan/formations';

export const previewPlan = (draft: PlanDraft, request: typeof fetch = fetch): Promise<Answer<PlanPreview>> =>
  ask(PLAN_PREVIEW, 'POST', draft, request);

export const exportMissions = (request: MissionExport, via: typeof fetch = fetch): Promise<Answer<MissionExportFile>> =>
  ask(MISSION_EXPORT, 'POST', request, via);

/** The plan as a file that the bench flies. */
export const savePlan = (plan: PlanFile, request: typeof fetch = fetch): Promise<Answer<MissionExportFile>> => ask(PLAN_FILE, 'POST', plan, request);

/** The formations with their places, to be drawn. */
export const readFormations = (aircraft: number, distanceM: number, request: typeof fetch = fetch): Promise<Answer<FormationPictures>> =>
  ask(`${FORMATIONS}?aircraft=${aircraft}&distance_m=${distanceM}`, 'GET', undefined, request);
