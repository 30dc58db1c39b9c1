//! Which flight controller an agent takes for its own, and what it says until it has one.

use super::*;

/// The agent of an aircraft whose line anything may speak on.
fn bench(configured: Option<u8>) -> Bench {
    let mut bench = Bench::new();
    let mut config = Config::new(muscop::Config::new(VehicleId(1), VehicleId(1), 1));
    config.autopilot_system_id = configured;
    bench.agent = Agent::new(config, 1, Instant::ZERO).unwrap();
    bench
}

/// A heartbeat of an ArduCopter with this id.
fn beat(bench: &mut Bench, system_id: u8, armed: bool) {
    let armed = if armed { MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED } else { MavModeFlag::empty() };
    let message = MavMessage::HEARTBEAT(HEARTBEAT_DATA {
        custom_mode: Mode::Brake.number(),
        mavtype: MavType::MAV_TYPE_QUADROTOR,
        autopilot: MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA,
        base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED | armed,
        ..HEARTBEAT_DATA::default()
    });
    let mut bytes = Vec::<u8, 300>::new();
    let header = MavHeader { system_id: system_id.into(), component_id: 1, sequence: 0 };
    encode_v2(header, &message, &mut bytes).unwrap();
    bench.feed(Input::Autopilot(&bytes));
}

/// Seconds in which these speak.
fn seconds(bench: &mut Bench, seconds: u64, speakers: &[u8]) {
    for _ in 0..seconds {
        for &system_id in speakers {
            beat(bench, system_id, false);
        }
        bench.now = bench.now + Duration::from_secs(1);
        bench.feed(Input::Wake);
    }
}

fn detail(bench: &Bench, name: &str) -> Option<Text> {
    let status = bench.agent.status(bench.now);
    status.checks.iter().find(|check| check.name == name).map(|check| check.detail.clone())
}

#[test]
fn of_two_none_is_commanded_and_the_check_names_both_and_the_cure() {
    for order in [[1, 2], [2, 1]] {
        let mut bench = bench(None);
        seconds(&mut bench, 30, &order);
        assert_eq!(bench.agent.system_id(), None);
        assert!(bench.sent.is_empty(), "nothing is sent to either: {:?}", bench.sent);
        let found = detail(&bench, "several flight controllers").unwrap();
        assert_eq!(
            found,
            "systems 1 and 2 speak on this line: set autopilot.system_id = N, the id of this aircraft's own"
        );
        let reply = bench.feed(Input::Operator { id: "s", command: Command::Setup });
        let refused = Rejection::Check { name: "several flight controllers", detail: found };
        assert_eq!(reply, Some(Reply::Refused(refused)));
        let errors = bench.log.iter().filter(|line| line.severity == Severity::Error).count();
        assert_eq!(errors, 1, "said once: {:?}", bench.log);
        // An aircraft in flight is landed as soon as it is known, not refused for what is not known.
        let land = bench.feed(Input::Operator { id: "l", command: Command::Land });
        assert_eq!(land, Some(Reply::Accepted));
    }
}

#[test]
fn a_configured_one_is_the_only_one_and_a_missing_one_is_not_known() {
    let mut bench = bench(Some(3));
    seconds(&mut bench, 200, &[1, 2]);
    assert_eq!(bench.agent.system_id(), None);
    let line = detail(&bench, "flight controller").unwrap();
    assert_eq!(line, "not known: autopilot.system_id 3 is not received, systems 1 and 2 on this line");
    beat(&mut bench, 3, false);
    assert_eq!(bench.agent.system_id(), Some(3));
    seconds(&mut bench, 5, &[1, 2, 3]);
    assert_eq!(detail(&bench, "several flight controllers"), None);
    assert!(bench.agent.status(bench.now).flight_controller.other_autopilots.heartbeats > 400);
}

#[test]
fn a_replacement_refuses_setup_until_the_operator_confirms_it() {
    let mut bench = bench(None);
    let known = KnownAutopilot { system_id: 1, is_armed: false };
    bench.feed(Input::KnownAutopilot { known, is_held: false });
    seconds(&mut bench, 70, &[2]);
    assert_eq!(bench.agent.system_id(), Some(2));
    let expected = "system 2 has replaced system 1: if that is right, set autopilot.system_id = 2";
    beat(&mut bench, 2, false);
    assert_eq!(detail(&bench, "flight controller").as_deref(), Some(expected));
    let reply = bench.feed(Input::Operator { id: "s", command: Command::Setup });
    let refused = Rejection::Check { name: "flight controller", detail: expected.try_into().unwrap() };
    assert_eq!(reply, Some(Reply::Refused(refused)));
    assert_eq!(bench.agent.known_autopilot(), Some(known), "an agent after this one expects the former");
}

#[test]
fn a_second_one_that_comes_later_stops_flights_on_the_ground_and_none_in_the_air() {
    let mut bench = Bench::new();
    bench.second();
    assert_eq!(bench.agent.system_id(), Some(1));
    beat(&mut bench, 9, false);
    let refused = |bench: &mut Bench, id| match bench.feed(Input::Operator { id, command: Command::Start }) {
        Some(Reply::Refused(Rejection::Check { name, .. })) => Some(name),
        _ => None,
    };
    assert_eq!(refused(&mut bench, "a"), Some("several flight controllers"));
    bench.armed = true;
    bench.second();
    beat(&mut bench, 9, false);
    assert_ne!(refused(&mut bench, "b"), Some("several flight controllers"));
    assert_eq!(bench.agent.system_id(), Some(1));
}

#[test]
fn an_agent_that_begins_in_flight_takes_the_kept_one_and_takes_up_the_one_that_the_guardian_holds() {
    let known = |system_id| KnownAutopilot { system_id, is_armed: true };
    // The other one speaks first, and for minutes.
    let mut kept = bench(None);
    kept.feed(Input::KnownAutopilot { known: known(1), is_held: false });
    seconds(&mut kept, 200, &[2]);
    assert_eq!(kept.agent.system_id(), None);
    let line = detail(&kept, "flight controller").unwrap();
    assert!(line.starts_with("not known: system 1 of before is not received, system 2;"), "{line}");
    beat(&mut kept, 1, true);
    assert_eq!(kept.agent.known_autopilot(), Some(known(1)));

    // The pulse that takes a flight up carries the id that the guardian receives, and no other.
    for (configured, held, takes_up) in
        [(None, None, 0), (None, Some(1), 1), (Some(1), Some(1), 1), (Some(2), Some(1), 0)]
    {
        let mut bench = bench(configured);
        let mut config = Config::new(wingbeat_protocol::mission::Config::new(VehicleId(1)));
        config.autopilot_system_id = configured;
        bench.agent = Agent::new(config, 1, Instant::ZERO).unwrap();
        if let Some(system_id) = held {
            bench.feed(Input::KnownAutopilot { known: known(system_id), is_held: true });
        }
        assert_eq!(bench.agent.pulse(bench.now).takes_up, takes_up, "{configured:?} {held:?}");
        bench.feed(Input::Operator { id: "r", command: Command::Return });
        let line = if held.is_some() { "waits: the guardian has the aircraft" } else { "waits until" };
        assert!(bench.log.iter().any(|entry| entry.text.contains(line)), "{:?}", bench.log);
        // Let go, it is not taken up any more.
        bench.feed(Input::KnownAutopilot { known: known(1), is_held: false });
        assert_eq!(bench.agent.pulse(bench.now).takes_up, 0);
    }
}

#[test]
fn two_senders_with_one_id_are_named_once_and_refuse_a_flight() {
    let mut bench = Bench::new();
    bench.second();
    let begun = bench.now;
    for tick in 0..200_u32 {
        bench.now = begun + Duration::from_millis(u64::from(tick) * 250);
        for offset_ms in [900_000, 30_000] {
            let time_boot_ms = offset_ms + tick * 250;
            bench.receive(&MavMessage::SYSTEM_TIME(SYSTEM_TIME_DATA { time_boot_ms, ..Default::default() }));
        }
        if tick % 4 == 0 {
            beat(&mut bench, 1, false);
        }
    }
    let found = detail(&bench, "several flight controllers").unwrap();
    assert_eq!(found, "two with system id 1 on this line: give each aircraft its own SYSID_THISMAV");
    let said = |what: &str| bench.log.iter().filter(|line| line.text.contains(what)).count();
    assert_eq!(said("two with system id 1"), 1);
    assert!(said("has rebooted") <= 2, "{:?}", bench.log);
}

#[test]
fn a_home_elsewhere_refuses_setup_and_a_return_to_it_says_so() {
    use wingbeat_autopilot::dialect::HOME_POSITION_DATA;
    let mut bench = Bench::new();
    bench.second();
    bench.receive(&MavMessage::HOME_POSITION(HOME_POSITION_DATA::default()));
    let line = detail(&bench, "return").unwrap();
    assert!(line.starts_with("home is ") && line.contains(" km from where it stands"), "{line}");
    let mut bench = Bench::climbing();
    bench.receive(&MavMessage::HOME_POSITION(HOME_POSITION_DATA::default()));
    let reply = bench.feed(Input::Operator { id: "r", command: Command::Return });
    assert_eq!(reply, Some(Reply::Accepted));
    assert!(bench.log.iter().any(|line| line.text.contains("returns to a home that is ")), "{:?}", bench.log);
}

#[test]
fn a_long_text_is_logged_whole() {
    let mut bench = Bench::new();
    bench.second();
    let whole = "PreArm: Compasses inconsistent, internal and external differ by 41 degrees and the pilot should calibrate them";
    for (seq, part) in whole.as_bytes().chunks(50).enumerate() {
        let mut text = [0; 50];
        text[..part.len()].copy_from_slice(part);
        bench.receive(&MavMessage::STATUSTEXT(STATUSTEXT_DATA {
            severity: MavSeverity::MAV_SEVERITY_CRITICAL,
            text: text.into(),
            id: 7,
            chunk_seq: seq as u8,
        }));
    }
    let lines: StdVec<_> =
        bench.log.iter().filter_map(|line| line.text.strip_prefix("flight controller: ")).collect();
    assert!(lines.concat().ends_with(whole), "{lines:?}");
    // A takeover by a ground station with a long name is said whole too.
    let mut bench = Bench::climbing();
    let what = "parameter WPNAV_SPEED = 700 (tcp 127.0.0.1:57856)";
    bench.feed(Input::GroundStation { what });
    for text in [what, "commands nothing until engaged again"] {
        assert!(bench.log.iter().any(|line| line.text.contains(text)), "{text}: {:?}", bench.log);
    }
}
