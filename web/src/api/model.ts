/**
 * Names for the types that `npm run generate` makes from `docs/openapi/ground.json`.
 * Nothing is declared here by hand: when the service changes, the compiler shows where the page must.
 */
import type { components } from './types';

type Schemas = components['schemas'];

export type Access = Schemas['Access'];
export type Actions = Schemas['Actions'];
export type AircraftChange = Schemas['AircraftChange'];
export type AircraftStatus = Schemas['AircraftStatus'];
export type ApiError = Schemas['ApiError'];
export type AuditEntry = Schemas['AuditEntry'];
export type AuditLog = Schemas['AuditLog'];
export type Avoidance = Schemas['Avoidance'];
export type BaseStation = Schemas['BaseStation'];
export type Command = Schemas['Command'];
export type CommandStage = Schemas['CommandStage'];
export type FleetAircraft = Schemas['FleetAircraft'];
export type FleetCommand = Schemas['FleetCommand'];
export type FleetCommandReply = Schemas['FleetCommandReply'];
export type FleetCommandRequest = Schemas['FleetCommandRequest'];
export type FleetCommandResult = Schemas['FleetCommandResult'];
export type FleetLinks = Schemas['FleetLinks'];
export type FleetLinkTest = Schemas['FleetLinkTest'];
export type FleetCommandNote = Schemas['FleetCommandNote'];
export type FleetLogLine = Schemas['FleetLogLine'];
export type FleetMission = Schemas['FleetMission'];
export type FleetParameters = Schemas['FleetParameters'];
export type FleetParameterWrite = Schemas['FleetParameterWrite'];
export type FleetPicture = Schemas['FleetPicture'];
export type FleetUpdate = Schemas['FleetUpdate'];
export type FormationPicture = Schemas['FormationPicture'];
export type FormationPictures = Schemas['FormationPictures'];
export type GeoPoint = Schemas['GeoPoint'];
export type LinkTestReport = Schemas['LinkTestReport'];
export type LinkTestRequest = Schemas['LinkTestRequest'];
export type LinkState = Schemas['LinkState'];
export type Measurements = Schemas['Measurements'];
export type MissionExport = Schemas['MissionExport'];
export type MissionExportFile = Schemas['MissionExportFile'];
export type MissionFileContent = Schemas['MissionFileContent'];
export type MissionFormat = Schemas['MissionFormat'];
export type MissionItem = Schemas['MissionItem'];
export type MissionSummary = Schemas['MissionSummary'];
export type MissionUpload = Schemas['MissionUpload'];
export type Parameter = Schemas['Parameter'];
export type ParameterComparison = Schemas['ParameterComparison'];
export type ParameterFile = Schemas['ParameterFile'];
export type ParameterReference = Schemas['ParameterReference'];
export type ParameterRow = Schemas['ParameterRow'];
export type Phase = Schemas['Phase'];
export type FleetMissionUpload = Schemas['FleetMissionUpload'];
export type PlanDraft = Schemas['PlanDraft'];
export type PlanFile = Schemas['PlanFile'];
export type PlanProtocol = Schemas['PlanProtocol'];
export type PlanPreview = Schemas['PlanPreview'];
export type RecordedEvent = Schemas['RecordedEvent'];
export type RecordedLog = Schemas['RecordedLog'];
export type RecordedResults = Schemas['RecordedResults'];
export type RecordedTrack = Schemas['RecordedTrack'];
export type Records = Schemas['Records'];
export type ReadMission = Schemas['ReadMission'];
export type UserRole = Schemas['UserRole'];
export type SwarmPlan = Schemas['SwarmPlan'];
export type Severity = Schemas['Severity'];
export type StateId = Schemas['StateId'];
export type VehicleOutcome = Schemas['VehicleOutcome'];
