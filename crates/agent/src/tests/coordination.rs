//! A flight that the operator sets up otherwise than configured: on the ground, before it begins, and by no other way.

use super::*;
use std::string::ToString as _;
use wingbeat_geo::formation::Layout;
use wingbeat_protocol::{follow_me, mission};

const ME: VehicleId = VehicleId(1);

fn muscop(change: impl Fn(&mut muscop::Config)) -> Coordination {
    let mut config = muscop::Config::new(ME, ME, 1);
    change(&mut config);
    config.into()
}

fn ready() -> Bench {
    let mut bench = Bench::new();
    bench.second();
    bench.second();
    bench
}

#[test]
fn a_flight_is_set_up_on_the_ground_and_keeps_its_mission() {
    let mut bench = ready();
    let wedge = muscop(|config| (config.swarm.layout, config.swarm.distance_m) = (Layout::Matrix, 20.0));
    let route = bench.agent.route().to_vec();
    assert!(!route.is_empty());
    assert_eq!(bench.feed(Input::Coordination(&wedge)), Some(Reply::Accepted));
    assert_eq!(bench.agent.coordination(), &wedge);
    assert_eq!(bench.agent.route(), route);
    assert_eq!(bench.feed(Input::Coordination(&wedge)), Some(Reply::AlreadyKnown));
    // What is made anew of it is configured alike.
    assert_eq!(bench.agent.restarted(bench.now).coordination(), &wedge);
    // Another protocol flies the same mission; a follower of a pilot flies none.
    let alone = Coordination::from(mission::Config::new(ME));
    assert_eq!(bench.feed(Input::Coordination(&alone)), Some(Reply::Accepted));
    assert_eq!((bench.agent.status(bench.now).protocol, bench.agent.route()), ("mission", route.as_slice()));
    let led = Coordination::from(follow_me::Config::new(ME, VehicleId(2), 2));
    assert_eq!(bench.feed(Input::Coordination(&led)), Some(Reply::Accepted));
    assert!(bench.log.iter().any(|line| line.text.contains("the mission is dropped")), "{:?}", bench.log);
    assert_eq!(bench.feed(Input::Coordination(&alone)), Some(Reply::Accepted));
    assert!(bench.agent.route().is_empty(), "what was dropped does not come back");
}

#[test]
fn numbers_that_cannot_be_flown_and_another_aircraft_are_refused_with_the_key() {
    let mut bench = ready();
    let before = bench.agent.coordination().clone();
    let close = muscop(|config| config.swarm.distance_m = 0.0);
    let other = muscop(|config| config.swarm.me = VehicleId(9));
    for (flight, words) in
        [(close, "muscop.distance_m: found 0, expected"), (other, "expected 0000000000000001")]
    {
        let Some(Reply::Refused(why)) = bench.feed(Input::Coordination(&flight)) else { panic!("{words}") };
        assert!(why.to_string().contains(words), "{why}");
        assert_eq!(bench.agent.coordination(), &before);
    }
}

#[test]
fn a_flight_that_has_begun_armed_motors_and_a_pilot_stand_against_it() {
    let wide = muscop(|config| config.swarm.distance_m = 70.0);
    let refused = |bench: &mut Bench| match bench.feed(Input::Coordination(&wide)) {
        Some(Reply::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    // A daemon that was started again in flight: nothing is received of its aircraft yet.
    let mut unknown = Bench::new();
    assert!(matches!(refused(&mut unknown), Rejection::NotReceived));
    let mut armed = ready();
    armed.armed = true;
    armed.second();
    // Armed by a pilot: that is said first.
    assert!(matches!(refused(&mut armed), Rejection::Disengaged(_)));
    let mut begun = ready();
    assert_eq!(
        begun.feed(Input::Operator { id: "a", command: Command::Setup }),
        Some(Reply::Accepted),
        "{:?}",
        begun.agent.status(begun.now).checks
    );
    assert!(matches!(refused(&mut begun), Rejection::Begun(_)));
    let mut taken = ready();
    taken.feed(Input::Operator { id: "b", command: Command::RecoverControl });
    assert!(matches!(refused(&mut taken), Rejection::Disengaged(_)));
    taken.feed(Input::Operator { id: "c", command: Command::Engage });
    assert_eq!(taken.feed(Input::Coordination(&wide)), Some(Reply::Accepted));
}
