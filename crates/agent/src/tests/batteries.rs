//! The check of the battery: of several the worst counts, and a battery that is not measured is not known.

use wingbeat_autopilot::dialect::{BATTERY_STATUS_DATA, MavBatteryChargeState};

use super::*;

fn found(bench: &Bench) -> Check {
    let checks = bench.agent.status(bench.now).checks;
    checks.into_iter().find(|check| check.name == "battery").expect("it is checked")
}

fn pack(id: u8, mv: u16, battery_remaining: i8, charge_state: MavBatteryChargeState) -> MavMessage {
    let mut m = BATTERY_STATUS_DATA { id, battery_remaining, charge_state, ..Default::default() };
    m.voltages = [u16::MAX; 10];
    m.voltages[0] = mv;
    MavMessage::BATTERY_STATUS(m)
}

#[test]
fn a_second_battery_that_is_nearly_empty_refuses_setup() {
    let mut bench = Bench::new();
    bench.second();
    assert!(found(&bench).passed, "{:?}", found(&bench));
    bench.receive(&pack(1, 9_900, 3, MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_CRITICAL));
    let check = found(&bench);
    assert_eq!(check.detail, "battery 2: critical, 3 %, 9.9 V, as the flight controller reports");
    let refused = bench.feed(Input::Operator { id: "s", command: Command::Setup });
    let is_refused = matches!(refused, Some(Reply::Refused(Rejection::Check { name: "battery", .. })));
    assert!(!check.passed && is_refused, "{refused:?}");
    // Without a state it is the charge.
    bench.receive(&pack(1, 9_900, 3, MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_UNDEFINED));
    let check = found(&bench);
    assert!(
        !check.passed
            && check.detail.starts_with("battery 2: 3 %, 9.9 V")
            && check.detail.contains("charge it"),
        "{check:?}"
    );
    // It is pulled out: what is known of the first alone does not pass.
    bench.receive(&pack(1, 12_300, 90, MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_OK));
    assert!(found(&bench).passed);
    for _ in 0..30 {
        bench.second();
    }
    let check = found(&bench);
    assert!(!check.passed && check.detail.starts_with("not known: battery 2 is no longer"), "{check:?}");
}

#[test]
fn a_battery_that_is_not_measured_is_not_known() {
    let mut bench = Bench::new();
    bench.second();
    bench.receive(&MavMessage::SYS_STATUS(SYS_STATUS_DATA {
        voltage_battery: 0,
        current_battery: -1,
        battery_remaining: -1,
        ..Default::default()
    }));
    let check = found(&bench);
    assert_eq!((check.passed, check.detail.as_str()), (false, "not known: no battery is reported"));
    bench.receive(&MavMessage::PARAM_VALUE(PARAM_VALUE_DATA {
        param_id: "BATT_MONITOR".into(),
        param_value: 0.0,
        param_type: MavParamType::MAV_PARAM_TYPE_INT8,
        ..Default::default()
    }));
    let check = found(&bench);
    assert!(!check.passed && check.detail.starts_with("not known: BATT_MONITOR is 0"), "{check:?}");
}
