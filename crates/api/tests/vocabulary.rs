//! Commands, states and phases as they cross HTTP: the same values as in the aircraft, and the names that other
//! programs rely on.

use serde_json::{Value, json};
use wingbeat_api::{Command, CommandRequest, Phase, StateId, VehicleId};

#[test]
fn a_command_is_its_name_and_one_with_a_value_an_object_of_that_name() {
    let member = VehicleId(0x00b8_27eb_0102_0304);
    for (command, expected) in [
        (Command::Setup, json!("setup")),
        (Command::Resume, json!("resume")),
        (Command::RecoverControl, json!("recover_control")),
        (Command::SetParameters, json!("set_parameters")),
        (Command::Exclude { member }, json!({ "exclude": { "member": "00b827eb01020304" } })),
    ] {
        assert_eq!(serde_json::to_value(command).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Command>(expected).unwrap(), command);
    }
}

#[test]
fn what_is_no_command_is_refused_with_what_was_expected() {
    for (command, why) in [
        (json!("explode"), "unknown variant `explode`"),
        (json!("exclude"), "expected struct variant"),
        (json!({ "exclude": {} }), "missing field `member`"),
        (json!({ "exclude": { "member": "7" } }), "string \"7\", expected 16 hexadecimal digits"),
        (json!({ "exclude": { "member": "+00000000000000a" } }), "expected 16 hexadecimal digits"),
        (json!({ "exclude": { "member": 7 } }), "expected 16 hexadecimal digits"),
        (json!({ "exclude": { "member": "000000000000000a", "now": true } }), "unknown field `now`"),
    ] {
        let request = json!({ "id": "a", "command": command });
        let error = serde_json::from_value::<CommandRequest>(request).unwrap_err().to_string();
        assert!(error.contains(why), "{command}: {error}");
    }
}

#[test]
fn a_state_has_one_name_on_the_page_in_json_and_in_the_log() {
    for state in [StateId::Start, StateId::MovingToWaypoint, StateId::GoOnPlease, StateId::Aborted] {
        assert_eq!(serde_json::to_value(state).unwrap(), Value::String(state.to_string()));
    }
    assert_eq!(StateId::MovingToWaypoint.to_string(), "MovingToWaypoint");
    assert_eq!(serde_json::to_value(Phase::Preparing).unwrap(), json!("preparing"));
}
