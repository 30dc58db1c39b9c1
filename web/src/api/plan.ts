/** Plans before they are sent: the ground service compares them with the aircraft, and writes the files. */
import { ask, type Answer } from './missions';
import type { FleetFlightSetups, FleetFlightSetupWrite, FormationPictures, MissionExport, MissionExportFile, PlanDraft, PlanFile, PlanPreview, SavedPlan } from './model';

export const PLAN_PREVIEW = '/api/v1/plan/preview';
export const MISSION_EXPORT = '/api/v1/mission-files/export';
export const PLAN_FILE = '/api/v1/plan/file';
export const SAVED_PLANS = '/api/v1/plan/saved';
export const FLEET_FLIGHT_SETUP = '/api/v1/fleet/flight-setup';
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

/** Such a file again. */
export const readSavedPlan = (file: SavedPlan, request: typeof fetch = fetch): Promise<Answer<PlanFile>> => ask(SAVED_PLANS, 'POST', file, request);

/** How the aircraft are to fly, and how they can be set to. */
export const readFlightSetups = (request: typeof fetch = fetch): Promise<Answer<FleetFlightSetups>> => ask(FLEET_FLIGHT_SETUP, 'GET', undefined, request);

/** Sets aircraft up; each answers for itself. */
export const writeFlightSetups = (write: FleetFlightSetupWrite, request: typeof fetch = fetch): Promise<Answer<FleetFlightSetups>> =>
  ask(FLEET_FLIGHT_SETUP, 'PUT', write, request);
