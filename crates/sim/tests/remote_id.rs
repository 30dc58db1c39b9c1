//! Remote ID of a 4.x flight controller: the agent states who flies, and no setup begins before it may arm.

use crate::common::pair;

use pair::{HOME, Pair};
use wingbeat_agent::{
    Command, Input, Operator, OperatorPlace, Rejection, RemoteIdConfig, Reply,
    open_drone_id::{IdKind, Identity, PlaceSource},
};
use wingbeat_geo::Duration;
use wingbeat_sim::flight_controller::{Config, Parameter};
use wingbeat_sim::motion::Profile;

const OPERATOR: OperatorPlace = OperatorPlace {
    latitude_e7: 394_820_000,
    longitude_e7: -3_460_000,
    altitude_m: Some(98.5),
    source: PlaceSource::Fixed,
};

fn identity() -> Identity {
    Identity {
        uas_id: "1581F5FJD238800D26V9".try_into().unwrap(),
        id_kind: IdKind::SerialNumber,
        operator_id: "FIN87astrdge12k8".try_into().unwrap(),
        description: "survey".try_into().unwrap(),
    }
}

fn pair(operator: Option<Operator>) -> Pair {
    let mut controller = Config { profile: Profile::Copter462, ..Config::new(1, HOME) };
    let parameters =
        [(Parameter::DID_ENABLE, 1.0), (Parameter::DID_MAVPORT, 1.0), (Parameter::DID_OPTIONS, 1.0)];
    controller.parameters.extend(parameters);
    Pair::new(controller, |config| {
        config.companion_loss = wingbeat_agent::CompanionLoss::EndsWithIt;
        config.remote_id = operator.map(|operator| RemoteIdConfig { identity: identity(), operator });
    })
}

#[test]
fn the_flight_controller_broadcasts_who_flies_and_may_arm() {
    let mut pair = pair(Some(Operator::Fixed(OPERATOR)));
    let check = pair.check("remote ID");
    assert!(!check.passed && check.is_required && check.detail.contains("no transmitter"), "{check:?}");
    pair.run(Duration::from_secs(12));
    let (id, operator) = pair.controller.remote_id().expect("an id");
    assert_eq!((id, operator), (b"1581F5FJD238800D26V9", (394_820_000, -3_460_000)));
    assert!(pair.check("remote ID").passed, "{:?}", pair.check("remote ID"));
    assert!(pair.check("autopilot's checks").passed, "{:?}", pair.check("autopilot's checks"));

    // Its transmitter fails: within 3 s of its last report no setup begins, and again when it is back.
    pair.controller.switch_remote_id_transmitter(false);
    pair.run(Duration::from_secs(5));
    let reply = pair.agent.status(pair.now());
    assert_eq!(reply.remote_id.unwrap().may_arm, None);
    assert!(!pair.check("remote ID").passed && !pair.check("autopilot's checks").passed);
    pair.controller.switch_remote_id_transmitter(true);
    pair.run(Duration::from_secs(3));
    assert!(pair.check("remote ID").passed);
}

#[test]
fn setup_is_refused_while_no_transmitter_reports() {
    let mut pair = pair(Some(Operator::Fixed(OPERATOR)));
    pair.controller.switch_remote_id_transmitter(false);
    pair.run(Duration::from_secs(12));
    let point = |north_e7| wingbeat_wire::Point {
        latitude_e7: HOME.latitude_e7 + north_e7,
        longitude_e7: HOME.longitude_e7,
        height_mm: 10_000,
    };
    pair.feed(Input::Mission(&[point(2_000), point(4_000)]));
    let ask = |pair: &mut Pair, id: &str| {
        let now = pair.now();
        let mut out = Box::new(wingbeat_agent::Outputs::default());
        pair.agent.handle(now, Input::Operator { id, command: Command::Setup }, &mut out);
        out.reply
    };
    let Some(Reply::Refused(Rejection::Check { name, detail })) = ask(&mut pair, "a") else {
        panic!("expected a refusal")
    };
    assert!(name == "remote ID" && detail.contains("no transmitter has reported"), "{name}: {detail}");
    pair.controller.switch_remote_id_transmitter(true);
    pair.run(Duration::from_secs(8));
    assert_eq!(ask(&mut pair, "b"), Some(Reply::Accepted), "{:?}", pair.lines);
}

#[test]
fn an_operator_stands_where_the_aircraft_was_armed_unless_it_is_configured() {
    let mut pair = pair(Some(Operator::TakeOff));
    pair.run(Duration::from_secs(12));
    assert_eq!(pair.controller.remote_id().unwrap().1, (HOME.latitude_e7, HOME.longitude_e7));
    assert!(pair.check("remote ID").passed);
}

#[test]
fn without_a_configured_id_nothing_is_stated_and_the_autopilot_refuses_by_itself() {
    let mut pair = pair(None);
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.controller.remote_id(), None);
    assert!(pair.agent.status(pair.now()).remote_id.is_none());
    let check = pair.check("autopilot's checks");
    assert!(!check.passed && check.detail.contains("UA_TYPE required"), "{check:?}");
}
