//! What travels over HTTP: the aircraft's API (`wingbeatd`) and the ground service's API (the PC
//! Companion). Both ends use these types; the OpenAPI documents and the web console's TypeScript are
//! generated from them. Commands, states and phases are the same values as in the aircraft: `wingbeat_wire`'s.
//!
//! Units: degrees, metres, metres per second, milliseconds; each is the last word of its field. An
//! aircraft's id is 16 hexadecimal digits (64 bits, which JSON numbers cannot hold).
#![forbid(unsafe_code)]

pub mod access;
pub mod aircraft;
pub mod alarms;
pub mod bundle;
pub mod checklist;
pub mod error;
pub mod fleet;
pub mod flight_setup;
pub mod links;
pub mod logs;
pub mod measurements;
pub mod metrics;
pub mod mission;
pub mod parameters;
pub mod planning;
pub mod records;
pub mod regions;

pub use access::{Access, AuditEntry, AuditLog, SignIn, SignedIn, User, UserRole, Users};
pub use aircraft::{
    Absent, AircraftStatus, Autopilot, Avoidance, Check, ClosestApproach, CommandOutcome, CommandProgress,
    CommandReply, CommandRequest, CommandStage, Cure, FenceBounds, FlightController, FlightLog, Gateway,
    GeoPoint, HttpApi, Identity, Keys, KeysValidity, Lease, LeaseGrant, LeaseRequest, LinkFault,
    LinkFaultKind, LinkState, LogLine, MissionSummary, Navigation, Nearby, Parameter, Radio, Refusal,
    Separation, Severity, Swarm, SwarmPlan, SwarmSlot,
};
pub use alarms::{AlarmAcknowledgement, AlarmKind, AlarmLevel, AlarmsAcknowledge, FleetAlarm, FleetAlarms};
pub use bundle::{
    BUNDLE_FORMAT, Bundle, BundleReceiving, BundledAircraft, BundledChecklist, BundledClock, BundledFile,
    FleetBundle, FleetBundleRequest, Missing,
};
pub use checklist::{
    CHECKLIST_RESULT_FORMAT, CheckedAircraft, CheckedItem, Checklist, ChecklistItem, ChecklistResult,
    ChecklistResultFile, ChecklistResults, ChecklistScope, ChecklistStep, KeptTick, Tick, TickWrite,
};
pub use error::ApiError;
pub use fleet::{
    Actions, AircraftChange, BaseStation, FleetAircraft, FleetCommand, FleetCommandNote, FleetCommandReply,
    FleetCommandRequest, FleetCommandResult, FleetLeases, FleetLogLine, FleetMission, FleetMissionUpload,
    FleetPicture, FleetTakeOver, FleetUpdate, MissionFile, MissionFileContent, MissionFileOptions,
    RadioListening, ReadMission, UnansweredSender, VehicleLease, VehicleOutcome,
};
pub use flight_setup::{
    FleetFlightSetupWrite, FleetFlightSetups, FlightProtocol, FlightSetup, FlightSetupChoice, FlightSetupKey,
    FlightSetupNow, FlightSetupSource, FlightSetupState, VehicleFlightSetup,
};
pub use links::{
    FleetLinkTest, FleetLinks, Link, LinkTestFlight, LinkTestReport, LinkTestRequest, LinkTestRole,
    LinkTestRow, LinkTestRows, LinkTestSecond, Links, MissingLinks,
};
pub use logs::{
    AutopilotLogRequest, AutopilotLogWork, AutopilotLogs, LOG_PIECE_MAX, LogFile, LogFiles, LogHash, LogKind,
};
pub use measurements::Measurements;
pub use mission::{MissionEnd, MissionItem, MissionPart, MissionUpload};
pub use parameters::{
    ComparedVehicle, FleetParameterRead, FleetParameterWrite, FleetParameters, ParameterComparison,
    ParameterEffect, ParameterFile, ParameterOutcome, ParameterOverlay, ParameterProgress,
    ParameterReference, ParameterRow, ParameterTable, ParameterValue, ParameterWork, ParameterWrite,
    VehicleParameterProgress, VehicleParameters,
};
pub use planning::{
    FormationPicture, FormationPictures, FormationPlace, MissionExport, MissionExportFile, MissionFormat,
    PlanConflict, PlanDraft, PlanFile, PlanFormation, PlanPreview, PlanProblem, PlanProtocol, PlannedFlight,
    SavedPlan,
};
pub use records::{RecordedDatagrams, RecordedEvent, RecordedLog, RecordedResults, RecordedTrack, Records};

pub use regions::{
    CheckedArea, FenceArea, FleetRegionRead, FleetRegionWrite, FleetRegions, GroundPoint, RallyPoint, Region,
    RegionFile, RegionFileContent, RegionState, RegionWork, VehicleRegion, check_fence, check_rally,
};

pub use wingbeat_wire::{Command, Phase, StateId, VehicleId};

/// The paths of both services.
pub mod paths {
    /// Both: what they measure, in Prometheus' text format.
    pub const METRICS: &str = "/metrics";
    /// Both: the description of the API, OpenAPI 3.1.
    pub const OPENAPI: &str = "/openapi.json";
    /// Both: a page that shows it, and what it is made of.
    pub const OPENAPI_PAGE: &str = "/openapi";
    /// Both: the page's script.
    pub const OPENAPI_SCRIPT: &str = "/openapi.js";
    /// Both: the page's style.
    pub const OPENAPI_STYLE: &str = "/openapi.css";
    /// Aircraft: its identity ([`Identity`](crate::Identity)).
    pub const IDENTITY: &str = "/api/v1/identity";
    /// Aircraft: the state now ([`AircraftStatus`](crate::AircraftStatus)).
    pub const STATUS: &str = "/api/v1/status";
    /// Aircraft: server-sent events `status` ([`AircraftStatus`](crate::AircraftStatus)) and `log`
    /// ([`LogLine`](crate::LogLine)).
    pub const EVENTS: &str = "/api/v1/events";
    /// Aircraft: the mission it holds (GET, PUT [`MissionUpload`](crate::MissionUpload)).
    pub const MISSION: &str = "/api/v1/mission";
    /// Aircraft: an operator's command (POST [`CommandRequest`](crate::CommandRequest)).
    pub const COMMANDS: &str = "/api/v1/commands";
    /// Aircraft: an operator's order as its console sealed it (POST, bytes, answered like a command).
    pub const ORDERS: &str = "/api/v1/orders";
    /// Aircraft: the fleet's bundle of keys (PUT, bytes, answered by [`Keys`](crate::Keys)).
    pub const KEYS: &str = "/api/v1/keys";
    /// The header with the token of the lease, where what is asked needs it.
    pub const LEASE_HEADER: &str = "wingbeat-lease";
    /// Aircraft: the lease, by which a console commands it (POST [`LeaseRequest`](crate::LeaseRequest), answered by
    /// [`Lease`](crate::Lease)).
    pub const LEASE: &str = "/api/v1/lease";
    /// Aircraft: what it receives of the others' probes ([`Links`](crate::Links)).
    pub const LINKS: &str = "/api/v1/links";
    /// Aircraft: a test of a link (POST [`LinkTestRequest`](crate::LinkTestRequest), GET
    /// [`LinkTestReport`](crate::LinkTestReport), DELETE).
    pub const LINK_TEST: &str = "/api/v1/links/test";
    /// Aircraft: what it recorded ([`LinkTestRows`](crate::LinkTestRows)).
    pub const LINK_TEST_ROWS: &str = "/api/v1/links/test/rows";
    /// Aircraft: the flight controller's parameters (GET [`ParameterTable`](crate::ParameterTable), PUT
    /// [`ParameterWrite`](crate::ParameterWrite)).
    pub const PARAMETERS: &str = "/api/v1/parameters";
    /// Aircraft: how far it has come with them (GET [`ParameterProgress`](crate::ParameterProgress)); reading them all (POST).
    pub const PARAMETERS_WORK: &str = "/api/v1/parameters/work";
    /// Aircraft: its flight logs ([`LogFiles`](crate::LogFiles)).
    pub const LOGS: &str = "/api/v1/logs";
    /// Aircraft: the bytes of one; it answers requests for ranges.
    pub const LOG_FILE: &str = "/api/v1/logs/file";
    /// Aircraft: the hash of a piece of one ([`LogHash`](crate::LogHash)).
    pub const LOG_HASH: &str = "/api/v1/logs/hash";
    /// Aircraft: fetching the flight controller's own logs (POST [`AutopilotLogRequest`](crate::AutopilotLogRequest), GET
    /// [`AutopilotLogs`](crate::AutopilotLogs)).
    pub const AUTOPILOT_LOGS: &str = "/api/v1/logs/autopilot";
    /// Ground: how far the aircraft have come with their parameters (GET [`FleetParameters`](crate::FleetParameters)), setting
    /// them (PUT [`FleetParameterWrite`](crate::FleetParameterWrite)), reading them all (POST
    /// [`FleetParameterRead`](crate::FleetParameterRead)).
    pub const FLEET_PARAMETERS: &str = "/api/v1/fleet/parameters";
    /// Ground: the aircraft's parameters against each other and a profile (POST
    /// [`ParameterReference`](crate::ParameterReference), answered by [`ParameterComparison`](crate::ParameterComparison)).
    pub const FLEET_PARAMETERS_COMPARISON: &str = "/api/v1/fleet/parameters/comparison";
    /// Ground: the parameters of one aircraft (`?vehicle=ID`) as a file of ground stations (GET).
    pub const FLEET_PARAMETERS_FILE: &str = "/api/v1/fleet/parameters/file";
    /// Aircraft: its fence and rally points (GET [`RegionState`](crate::RegionState), PUT [`Region`](crate::Region)), reading them (POST).
    pub const REGION: &str = "/api/v1/region";
    /// Ground: the fences and rally points of the aircraft, compared (GET [`FleetRegions`](crate::FleetRegions)), sending them (PUT
    /// [`FleetRegionWrite`](crate::FleetRegionWrite)), reading them (POST [`FleetRegionRead`](crate::FleetRegionRead)).
    pub const FLEET_REGION: &str = "/api/v1/fleet/region";
    /// Aircraft: how it is to fly (GET [`FlightSetupState`](crate::FlightSetupState), PUT [`FlightSetup`](crate::FlightSetup), DELETE).
    pub const FLIGHT_SETUP: &str = "/api/v1/flight-setup";
    /// Ground: how the aircraft are to fly, compared (GET [`FleetFlightSetups`](crate::FleetFlightSetups)), setting that (PUT
    /// [`FleetFlightSetupWrite`](crate::FleetFlightSetupWrite)).
    pub const FLEET_FLIGHT_SETUP: &str = "/api/v1/fleet/flight-setup";
    /// Ground: reads a file with a fence or rally points (POST [`RegionFile`](crate::RegionFile)).
    pub const REGION_FILES: &str = "/api/v1/region-files";
    /// Ground: the links of every pair ([`FleetLinks`](crate::FleetLinks)).
    pub const FLEET_LINKS: &str = "/api/v1/fleet/links";
    /// Ground: a test of a link (POST [`LinkTestRequest`](crate::LinkTestRequest), GET
    /// [`FleetLinkTest`](crate::FleetLinkTest), DELETE).
    pub const FLEET_LINK_TEST: &str = "/api/v1/fleet/links/test";
    /// Ground: what was recorded of it by one receiver, as the file that `wingbeat linktest report` reads.
    pub const FLEET_LINK_TEST_FILE: &str = "/api/v1/fleet/links/test/file";
    /// Ground: the picture of the fleet ([`FleetPicture`](crate::FleetPicture)).
    pub const FLEET: &str = "/api/v1/fleet";
    /// Ground: server-sent events `picture` ([`FleetPicture`](crate::FleetPicture)), then `update`
    /// ([`FleetUpdate`](crate::FleetUpdate)) and `log` ([`FleetLogLine`](crate::FleetLogLine)).
    pub const FLEET_EVENTS: &str = "/api/v1/fleet/events";
    /// Ground: one aircraft with all that is known of it ([`FleetAircraft`](crate::FleetAircraft)).
    pub const FLEET_AIRCRAFT: &str = "/api/v1/fleet/aircraft";
    /// Ground: the logs of the fleet in one folder of the service's computer (POST
    /// [`FleetBundleRequest`](crate::FleetBundleRequest), GET [`FleetBundle`](crate::FleetBundle)).
    pub const FLEET_BUNDLE: &str = "/api/v1/fleet/bundle";
    /// Ground: the lab's checklist (GET [`Checklist`](crate::Checklist)), ticking an item of it (PUT
    /// [`TickWrite`](crate::TickWrite)), no item ticked any more (DELETE).
    pub const FLEET_CHECKLIST: &str = "/api/v1/fleet/checklist";
    /// Ground: what was kept of it with flights ([`ChecklistResults`](crate::ChecklistResults)).
    pub const FLEET_CHECKLIST_RESULTS: &str = "/api/v1/fleet/checklist/results";
    /// Ground: one of these files ([`ChecklistResult`](crate::ChecklistResult)).
    pub const FLEET_CHECKLIST_RESULT: &str = "/api/v1/fleet/checklist/result";
    /// Ground: takes over the leases that other consoles hold (POST [`FleetTakeOver`](crate::FleetTakeOver), answered by
    /// [`FleetLeases`](crate::FleetLeases)).
    pub const FLEET_LEASES: &str = "/api/v1/fleet/leases";
    /// Ground: why a command was given (PUT [`FleetCommandNote`](crate::FleetCommandNote)).
    pub const FLEET_COMMAND_NOTE: &str = "/api/v1/fleet/commands/note";
    /// Ground: a map of the ground as a PMTiles archive, where one is configured; it answers requests for ranges.
    pub const MAP: &str = "/map.pmtiles";
    /// Ground: what is to be known of a map that is served tile by tile (MBTiles), as TileJSON 3.0.0.
    pub const TILE_JSON: &str = "/tiles.json";
    /// Ground: a tile of it; rows count from the north. 204 where it has none.
    pub const TILES: &str = "/tiles/{zoom}/{column}/{row}";
    /// Ground: a command for many (POST [`FleetCommandRequest`](crate::FleetCommandRequest)).
    pub const FLEET_COMMANDS: &str = "/api/v1/fleet/commands";
    /// Ground: a mission for one aircraft (PUT [`FleetMissionUpload`](crate::FleetMissionUpload)).
    pub const FLEET_MISSION: &str = "/api/v1/fleet/mission";
    /// Ground: reads a mission file (POST [`MissionFile`](crate::MissionFile)); nothing is sent to an aircraft.
    pub const MISSION_FILES: &str = "/api/v1/mission-files";
    /// Ground: previews missions against the fleet (POST [`PlanDraft`](crate::PlanDraft), answered by
    /// [`PlanPreview`](crate::PlanPreview)); nothing is sent to an aircraft.
    pub const PLAN_PREVIEW: &str = "/api/v1/plan/preview";
    /// Ground: writes a mission file (POST [`MissionExport`](crate::MissionExport), answered by
    /// [`MissionExportFile`](crate::MissionExportFile)).
    pub const MISSION_EXPORT: &str = "/api/v1/mission-files/export";
    /// Ground: a plan as a file that the bench flies (POST [`PlanFile`](crate::PlanFile), answered by
    /// [`MissionExportFile`](crate::MissionExportFile)).
    pub const PLAN_FILE: &str = "/api/v1/plan/file";
    /// Ground: the alarms ([`FleetAlarms`](crate::FleetAlarms)), and acknowledging them (POST
    /// [`AlarmsAcknowledge`](crate::AlarmsAcknowledge)).
    pub const FLEET_ALARMS: &str = "/api/v1/fleet/alarms";
    /// Ground: reads such a file again (POST [`SavedPlan`](crate::SavedPlan), answered by [`PlanFile`](crate::PlanFile)).
    pub const SAVED_PLANS: &str = "/api/v1/plan/saved";
    /// Ground: the formations with their places ([`FormationPictures`](crate::FormationPictures)).
    pub const FORMATIONS: &str = "/api/v1/plan/formations";
    /// Ground: who asks (GET, [`Access`](crate::Access)); signing in (POST [`SignIn`](crate::SignIn), answered by
    /// [`Access`](crate::Access)) and out (DELETE).
    pub const SESSION: &str = "/api/v1/session";
    /// Ground: what was done, after the entry with a number ([`AuditLog`](crate::AuditLog)).
    pub const AUDIT: &str = "/api/v1/audit";
    /// Ground: the users ([`Users`](crate::Users)).
    pub const USERS: &str = "/api/v1/users";
    /// Ground: a user's sessions (DELETE ends them).
    pub const USER_SESSIONS: &str = "/api/v1/users/sessions";
    /// Ground: the recorded flights ([`Records`](crate::Records)).
    pub const RECORDS: &str = "/api/v1/records";
    /// Ground: what of one is replayed ([`RecordedTrack`](crate::RecordedTrack)).
    pub const RECORDS_TRACK: &str = "/api/v1/records/track";
    /// Ground: the page of a campaign's results, for a browser. It comes from a file and not from the service: no script of it runs.
    pub const RECORDS_PAGE: &str = "/api/v1/records/page";
}
