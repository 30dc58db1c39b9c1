/** Plans before they are sent: the ground service compares them with the aircraft, and writes the files. */
import { ask, type Answer } from './missions';
import type { MissionExport, MissionExportFile, PlanDraft, PlanPreview } from './model';

export const PLAN_PREVIEW = '/api/v1/plan/preview';
export const MISSION_EXPORT = '/api/v1/mission-files/export';

export const previewPlan = (draft: PlanDraft, request: typeof fetch = fetch): Promise<Answer<PlanPreview>> =>
  ask(PLAN_PREVIEW, 'POST', draft, request);

export const exportMissions = (request: MissionExport, via: typeof fetch = fetch): Promise<Answer<MissionExportFile>> =>
  ask(MISSION_EXPORT, 'POST', request, via);
