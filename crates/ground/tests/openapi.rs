//! The committed OpenAPI document is what the service serves.

use std::path::Path;

#[test]
fn the_committed_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi/ground.json");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let served = wingbeat_ground::openapi().to_pretty_json().expect("JSON");
    assert!(
        committed.trim_end() == served,
        "docs/openapi/ground.json differs from the service; run `cargo xtask openapi` and commit it"
    );
}

#[test]
fn it_describes_every_path_of_the_service() {
    let document = wingbeat_ground::openapi();
    let paths: Vec<_> = document.paths.paths.keys().map(String::as_str).collect();
    use wingbeat_api::paths::{
        AUDIT, FLEET, FLEET_AIRCRAFT, FLEET_ALARMS, FLEET_BUNDLE, FLEET_CHECKLIST, FLEET_CHECKLIST_RESULT,
        FLEET_CHECKLIST_RESULTS, FLEET_COMMAND_NOTE, FLEET_COMMANDS, FLEET_EVENTS, FLEET_FLIGHT_SETUP,
        FLEET_LEASES, FLEET_LINK_TEST, FLEET_LINK_TEST_FILE, FLEET_LINKS, FLEET_MISSION, FLEET_PARAMETERS,
        FLEET_PARAMETERS_COMPARISON, FLEET_PARAMETERS_FILE, FLEET_REGION, FORMATIONS, MISSION_EXPORT,
        MISSION_FILES, PLAN_FILE, PLAN_PREVIEW, RECORDS, RECORDS_PAGE, RECORDS_TRACK, REGION_FILES,
        SAVED_PLANS, SESSION, USER_SESSIONS, USERS,
    };
    let expected = [
        AUDIT,
        FLEET,
        FLEET_AIRCRAFT,
        FLEET_ALARMS,
        FLEET_BUNDLE,
        FLEET_CHECKLIST,
        FLEET_CHECKLIST_RESULT,
        FLEET_CHECKLIST_RESULTS,
        FLEET_COMMANDS,
        FLEET_COMMAND_NOTE,
        FLEET_EVENTS,
        FLEET_FLIGHT_SETUP,
        FLEET_LEASES,
        FLEET_LINKS,
        FLEET_LINK_TEST,
        FLEET_LINK_TEST_FILE,
        FLEET_MISSION,
        FLEET_PARAMETERS,
        FLEET_PARAMETERS_COMPARISON,
        FLEET_PARAMETERS_FILE,
        FLEET_REGION,
        MISSION_FILES,
        MISSION_EXPORT,
        PLAN_FILE,
        FORMATIONS,
        PLAN_PREVIEW,
        SAVED_PLANS,
        RECORDS,
        RECORDS_PAGE,
        RECORDS_TRACK,
        REGION_FILES,
        SESSION,
        USERS,
        USER_SESSIONS,
    ];
    assert_eq!(paths, expected);
    let schemas = document.components.expect("components").schemas;
    for name in ["FleetPicture", "FleetUpdate", "FleetLogLine", "AircraftStatus", "ApiError"] {
        assert!(schemas.contains_key(name), "{name}");
    }
}
