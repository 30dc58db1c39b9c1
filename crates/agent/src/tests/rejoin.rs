//! An agent that begins while its aircraft flies: what it reads, what it takes up, and what it leaves alone.

use wingbeat_autopilot::dialect::{
    MISSION_ACK_DATA, MISSION_COUNT_DATA, MISSION_CURRENT_DATA, MISSION_ITEM_INT_DATA, MISSION_REQUEST_DATA,
    MavCmd, MavFrame,
};
use wingbeat_autopilot::mission::HeldHash;
use wingbeat_protocol::{FlightRecord, mission as mission_protocol, sweep};

use super::*;

const BRAKE: Modes = Modes(1 << 17);

fn point(north: i32) -> Point {
    Point { latitude_e7: 394_825_940 + north * 9_000, longitude_e7: -3_462_650, height_mm: 20_120 }
}

/// What the flight controller holds: three waypoints 100 m apart, the first below the aircraft.
fn route() -> StdVec<Point> {
    (0..3).map(point).collect()
}

fn hash() -> u64 {
    hash_of(&route())
}

/// What distinguishes a route that is held so.
fn hash_of(route: &[Point]) -> u64 {
    let mut hash = HeldHash::default();
    route.iter().enumerate().for_each(|(i, point)| hash.add(i, crate::executor::place(*point)));
    hash.value()
}

/// What ArduCopter stores of a height and reports, 3.5.7 and 4.x alike.
fn cut_mm(height_mm: i32) -> i32 {
    (height_mm as f32 * 1e-3 * 100.0) as i32 * 10
}

fn mission() -> Coordination {
    mission_protocol::Config::new(VehicleId(1)).into()
}

fn mbcap() -> Coordination {
    mbcap::Config { me: VehicleId(1), ..mbcap::Config::mbcap_e() }.into()
}

/// A bench whose agent has no mission, and a flight controller that holds one.
struct Found {
    bench: Bench,
    /// The mission in the flight controller; none answers nothing.
    holds: Option<StdVec<Point>>,
    item: Option<u16>,
    /// Modes that were asked for, with the time in seconds.
    asked: StdVec<(u64, Mode)>,
    /// Whether the mission was ever asked for.
    has_read: bool,
}

/// What happens to it.
type Change = fn(&mut Found);

fn clock(time_boot_ms: u32) -> MavMessage {
    MavMessage::SYSTEM_TIME(SYSTEM_TIME_DATA { time_unix_usec: 0, time_boot_ms })
}

impl Found {
    /// In BRAKE, 20 m above the first waypoint, on its way to the second.
    fn new(coordination: Coordination, before: Before) -> Self {
        let mut bench = Bench::new();
        let mut config = Config::new(coordination);
        config.companion_loss = CompanionLoss::EndsWithIt;
        bench.agent = Agent::new(config, 1, Instant::ZERO).unwrap();
        (bench.armed, bench.mode, bench.height_mm) = (true, Mode::Brake.number(), 20_000);
        bench.feed(Input::Before(before));
        Self { bench, holds: Some(route()), item: Some(3), asked: StdVec::new(), has_read: false }
    }

    fn left_on_route(coordination: Coordination) -> Self {
        Self::new(coordination, Before::OnRoute { modes: BRAKE, route: hash() })
    }

    /// Seconds pass: the flight controller reports, answers, and enters what it is asked for.
    fn seconds(&mut self, seconds: u64) {
        for _ in 0..seconds {
            let second = self.bench.now.as_millis() / 1_000;
            self.bench.second();
            if let Some(seq) = self.item {
                let current = MISSION_CURRENT_DATA { seq, ..Default::default() };
                self.bench.receive(&MavMessage::MISSION_CURRENT(current));
            }
            let mut next = 0;
            while let Some(message) = self.bench.sent.get(next).cloned() {
                next += 1;
                match message {
                    MavMessage::SET_MODE(m) => {
                        let mode = Mode::from_number(m.custom_mode).unwrap();
                        self.bench.mode = m.custom_mode;
                        self.asked.push((second, mode));
                    }
                    MavMessage::MISSION_REQUEST_LIST(_) => {
                        self.has_read = true;
                        let Some(holds) = &self.holds else { continue };
                        let count =
                            MISSION_COUNT_DATA { count: holds.len() as u16 + 2, ..Default::default() };
                        self.bench.receive(&MavMessage::MISSION_COUNT(count));
                    }
                    MavMessage::MISSION_REQUEST_INT(r) => self.answer(r.seq),
                    // It holds what is read back; here it asks for all that it is offered.
                    MavMessage::MISSION_COUNT(_) => self.request(0),
                    MavMessage::MISSION_ITEM_INT(item) => {
                        let next = item.seq + 1;
                        if usize::from(next) < self.holds.as_ref().map_or(0, StdVec::len) + 2 {
                            self.request(next);
                        } else {
                            let accepted = MISSION_ACK_DATA::default();
                            self.bench.receive(&MavMessage::MISSION_ACK(accepted));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn request(&mut self, seq: u16) {
        let request = MISSION_REQUEST_DATA { seq, ..Default::default() };
        self.bench.receive(&MavMessage::MISSION_REQUEST(request));
    }

    fn answer(&mut self, seq: u16) {
        let Some(holds) = &self.holds else { return };
        let at = holds[usize::from(seq.saturating_sub(2))];
        let command = if seq == 1 { MavCmd::MAV_CMD_NAV_TAKEOFF } else { MavCmd::MAV_CMD_NAV_WAYPOINT };
        self.bench.receive(&MavMessage::MISSION_ITEM_INT(MISSION_ITEM_INT_DATA {
            seq,
            command,
            frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT,
            x: at.latitude_e7,
            y: at.longitude_e7,
            z: at.height_mm as f32 * 1e-3,
            ..Default::default()
        }));
    }

    fn status(&self) -> Status {
        self.bench.agent.status(self.bench.now)
    }

    fn says(&self, what: &str) -> bool {
        self.bench.log.iter().any(|entry| entry.text.contains(what))
    }
}

#[test]
fn a_flight_that_was_left_on_its_route_goes_on_where_it_was() {
    for coordination in [mission(), mbcap()] {
        let mut found = Found::left_on_route(coordination);
        let pulse = found.bench.agent.pulse(found.bench.now);
        assert_eq!((pulse.activity, pulse.ours), (Activity::Commanding, BRAKE));
        found.seconds(1);
        let pulse = found.bench.agent.pulse(found.bench.now);
        assert_eq!((pulse.activity, pulse.ours, pulse.route), (Activity::Commanding, BRAKE, 0));
        assert!(
            pulse.takes_up == 0 && found.status().state == StateId::Holding,
            "{:?}",
            found.status().state
        );
        assert!(found.status().detail.contains("holds"), "{}", found.status().detail);
        found.seconds(4);
        assert_eq!(found.asked, [], "it stands in BRAKE, and has received others for less than 5 s");
        assert_eq!((found.status().route_len, found.status().reached), (3, Some(0)), "it is shown already");
        assert!(found.says("3 waypoints, at item 3"), "{:?}", found.bench.log);
        found.seconds(15);
        let [(at, Mode::Auto)] = found.asked[..] else {
            panic!("{:?}, {}, {:?}", found.asked, found.status().detail, found.bench.log)
        };
        assert!((5..15).contains(&at), "{at} s");
        let status = found.status();
        assert_eq!((status.phase, status.reached, status.engaged), (Phase::Moving, Some(0), true));
        assert!(found.says("taken up: on to waypoint 1"), "{:?}", found.bench.log);
        // Now the guardian knows the route again.
        let pulse = found.bench.agent.pulse(found.bench.now);
        assert_eq!((pulse.activity, pulse.route), (Activity::Commanding, hash()));
    }
}

/// The daemon before loads a route into a flight controller that holds what ArduCopter does of its heights.
#[test]
fn a_route_with_heights_of_a_millimetre_is_known_again() {
    for heights_mm in [[20_129, 20_125, 20_121], [20_130, 4_019, 2_001], [20_000, 20_000, 20_000]] {
        let route: StdVec<Point> =
            (0..3).map(|i| Point { height_mm: heights_mm[i as usize], ..point(i) }).collect();
        let held: StdVec<Point> =
            route.iter().map(|p| Point { height_mm: cut_mm(p.height_mm), ..*p }).collect();
        let mut before = Found::new(mission(), Before::Unknown);
        (before.bench.armed, before.bench.mode, before.bench.height_mm) = (false, 0, 0);
        before.holds = Some(held.clone());
        assert_eq!(before.bench.feed(Input::Mission(&route)), Some(Reply::Accepted));
        before.seconds(30);
        assert_eq!(
            before.bench.feed(Input::Operator { id: "s", command: Command::Setup }),
            Some(Reply::Accepted),
            "{:?}",
            before.bench.log
        );
        before.seconds(10);
        // This one has no parameter of a speed, and Setup ends with that; by then the route was loaded and read back.
        let left_on = before.bench.agent.route_hash;
        assert_ne!(left_on, 0, "{:?}", before.bench.log);
        for (holds, is_it) in [(0, true), (10, false)] {
            let mut found = Found::new(mission(), Before::OnRoute { modes: BRAKE, route: left_on });
            let mut other = held.clone();
            other[1].height_mm += holds;
            found.holds = Some(other);
            found.seconds(20);
            let modes: StdVec<Mode> = found.asked.iter().map(|(_, mode)| *mode).collect();
            assert_eq!(
                modes == [Mode::Auto],
                is_it,
                "{heights_mm:?}, {holds} mm more: {:?}",
                found.bench.log
            );
        }
        // Handed over again before it is read.
        let mut found = Found::new(mission(), Before::OnRoute { modes: BRAKE, route: left_on });
        assert_eq!(found.bench.feed(Input::Mission(&route)), Some(Reply::Accepted));
        found.holds = Some(held);
        found.seconds(5);
        assert!(found.says("the mission that was handed over"), "{:?}", found.bench.log);
    }
}

/// A short mission is read before the flight controller reports its current item for the first time.
#[test]
fn the_current_item_may_be_reported_after_the_mission_was_read() {
    let mut found = Found::left_on_route(mission());
    found.item = None;
    found.seconds(3);
    assert!(found.says("3 waypoints, at an item that is not known yet"), "{:?}", found.bench.log);
    assert!(found.status().detail.starts_with("found on its route: holds"), "{}", found.status().detail);
    found.item = Some(3);
    found.seconds(12);
    assert!(found.says("taken up: on to waypoint 1"), "{:?}", found.bench.log);
}

#[test]
fn what_stands_against_it_is_named_and_the_aircraft_holds_then_lands() {
    let no_mission = "the mission was not read back";
    let table: [(&str, Change, &str); 5] = [
        (
            "another mission",
            |f| f.holds = Some((1..4).map(point).collect()),
            "not the one that it was left on",
        ),
        (
            "a longer mission",
            |f| f.holds = Some(route().into_iter().chain([point(9)]).collect()),
            "not the one",
        ),
        ("no answer", |f| f.holds = None, no_mission),
        ("no current item", |f| f.item = None, "at no item of its mission"),
        ("the end of the mission", |f| f.item = Some(5), "at the end of its mission"),
    ];
    for (what, change, why) in table {
        let mut found = Found::left_on_route(mission());
        change(&mut found);
        if what == "the end of the mission" {
            // Where the last waypoint lies under it.
            found.holds = Some(StdVec::from([point(-2), point(-1), point(0)]));
            let route = hash_of(found.holds.as_ref().unwrap());
            found.bench.agent.before = Before::OnRoute { modes: BRAKE, route };
            found.item = Some(4);
        }
        found.seconds(30);
        assert_eq!(found.asked, [], "{what}");
        let detail = found.status().detail;
        assert!(detail.contains(why) && detail.ends_with("holds, then lands"), "{what}: {detail}");
        assert_eq!(found.bench.agent.pulse(found.bench.now).activity, Activity::Commanding, "{what}");
        found.seconds(40);
        let [(at, Mode::Land)] = found.asked[..] else { panic!("{what}: {:?}", found.asked) };
        assert!((58..63).contains(&at), "{what}: {at} s");
    }
}

/// Each of them ends the taking up, and nothing more is asked of the flight controller.
#[test]
fn a_pilots_aircraft_is_not_touched() {
    let takes: [(&str, Change); 3] = [
        ("LOITER", |f| f.bench.mode = Mode::Loiter.number()),
        ("a failsafe's RTL", |f| f.bench.mode = Mode::Rtl.number()),
        ("a reboot", |f| {
            // In flight one frame of another clock is no reboot.
            f.bench.receive(&clock(1_000));
            assert!(f.status().engaged);
            f.bench.receive(&clock(1_100));
        }),
    ];
    for (what, take) in takes {
        for (after_s, has_read) in [(0, false), (3, true), (4, true)] {
            if what == "a reboot" && after_s == 0 {
                continue;
            }
            let mut found = Found::left_on_route(mbcap());
            let first_s = after_s.min(1);
            found.seconds(first_s);
            found.bench.receive(&clock(60_000));
            found.seconds(after_s - first_s);
            take(&mut found);
            found.seconds(1);
            assert!(!found.status().engaged, "{what}, {after_s} s: {}", found.status().detail);
            found.seconds(100);
            assert_eq!((&found.asked[..], found.has_read), (&[][..], has_read), "{what}, {after_s} s");
            assert!(!found.bench.commands_vehicle(), "{what}: {:?}", found.bench.sent);
            assert_eq!(found.bench.agent.pulse(found.bench.now).activity, Activity::Pilot, "{what}");
        }
    }
}

/// What the guardian knew of a flight that is over applies to no other.
#[test]
fn a_flight_that_is_over_is_not_taken_up() {
    let mut found = Found::left_on_route(mission());
    found.bench.armed = false;
    found.seconds(3);
    assert!(!found.has_read, "it stands");
    // Its pilot arms it.
    (found.bench.armed, found.bench.mode) = (true, Mode::Brake.number());
    found.seconds(100);
    assert_eq!(found.asked, []);
    assert!(!found.status().engaged && !found.has_read, "{}", found.status().detail);
}

#[test]
fn safe_10_an_aircraft_of_a_swarm_that_flies_to_an_unknown_target_brakes() {
    let swarm: Coordination = muscop::Config::new(VehicleId(1), VehicleId(1), 3).into();
    for (coordination, mode, brakes) in [
        (swarm.clone(), Mode::Guided, true),
        (swarm.clone(), Mode::Brake, false),
        (swarm.clone(), Mode::Rtl, false),
        (swarm.clone(), Mode::Land, false),
        (swarm, Mode::Loiter, false),
        (mission(), Mode::Guided, false),
        (mbcap(), Mode::Guided, false),
    ] {
        let mut found = Found::new(coordination, Before::Unknown);
        found.bench.mode = mode.number();
        found.seconds(20);
        let asked: StdVec<_> = found.asked.iter().map(|(_, mode)| *mode).collect();
        assert_eq!(asked, if brakes { StdVec::from([Mode::Brake]) } else { StdVec::new() }, "{mode:?}");
        assert_eq!(found.says("brakes; command Return or Land"), brakes, "{:?}", found.bench.log);
        if brakes {
            assert_eq!(found.status().state, StateId::Start);
            let landed = found.bench.feed(Input::Operator { id: "l", command: Command::Land });
            assert_eq!(landed, Some(Reply::Accepted));
            found.seconds(3);
            assert_eq!(found.asked.last().unwrap().1, Mode::Land);
        }
    }
}

#[test]
fn without_the_guardians_word_it_reads_shows_and_orders_nothing() {
    let sweeps = sweep::Config::new(VehicleId(1), 0, 1);
    for (coordination, before) in [
        (mission(), Before::Unknown),
        (mbcap(), Before::Ours(BRAKE)),
        (sweeps.into(), Before::Unknown),
        (muscop::Config::new(VehicleId(1), VehicleId(1), 3).into(), Before::Unknown),
    ] {
        let mut found = Found::new(coordination.clone(), before);
        found.seconds(100);
        let status = found.status();
        assert_eq!(found.asked, [], "{coordination:?}");
        assert!(
            status.detail.starts_with("not rejoining") && status.state == StateId::Start,
            "{}",
            status.detail
        );
        assert!(found.says(": 3 waypoints, at item 3"), "{:?}", found.bench.log);
        assert_eq!((status.route_len, status.reached), (3, Some(0)));
        assert!(status.route_hash.is_some());
        assert_eq!(found.bench.agent.pulse(found.bench.now).activity, Activity::IdleArmed);
        // On the ground nothing of it is left: a mission that no operator handed over is not flown.
        found.bench.armed = false;
        found.seconds(2);
        assert_eq!(found.status().route_len, 0);
        assert_eq!(
            found.bench.feed(Input::Operator { id: "e", command: Command::Engage }),
            Some(Reply::Accepted)
        );
        assert_eq!((found.status().route_len, found.bench.agent.mission.route().len()), (0, 0));
    }
}

#[test]
fn a_mission_that_was_handed_over_before_is_compared_and_kept() {
    for (handed, is_one) in [(route(), true), ((1..4).map(point).collect(), false)] {
        let mut found = Found::new(mission(), Before::Unknown);
        assert_eq!(found.bench.feed(Input::Mission(&handed)), Some(Reply::Accepted));
        found.seconds(5);
        assert_eq!(found.says("the mission that was handed over"), is_one, "{:?}", found.bench.log);
        assert_eq!(found.says("another mission than was handed over"), !is_one);
        assert_eq!(found.bench.agent.mission.route(), handed.as_slice());
    }
}

#[test]
fn an_aircraft_that_was_given_back_and_reports_no_position_lands() {
    let mut found = Found::left_on_route(mission());
    let heartbeat = MavMessage::HEARTBEAT(HEARTBEAT_DATA {
        custom_mode: Mode::Brake.number(),
        mavtype: MavType::MAV_TYPE_QUADROTOR,
        autopilot: MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA,
        base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED | MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED,
        ..HEARTBEAT_DATA::default()
    });
    let mut landed_at = None;
    for tenth in 0..200 {
        found.bench.sent.clear();
        if tenth % 10 == 0 {
            found.bench.receive(&heartbeat);
        }
        found.bench.now = found.bench.now + Duration::from_millis(100);
        found.bench.feed(Input::Wake);
        if found.bench.asked_for_mode(Mode::Land) {
            landed_at = landed_at.or(Some(tenth));
        }
    }
    assert_eq!(landed_at, Some(99), "{:?}", found.bench.log);
    assert!(found.says("no position is reported; lands"), "{:?}", found.bench.log);
}

/// The operator decides while it waits, and it does not go on against him.
#[test]
fn an_operators_command_ends_the_taking_up() {
    for (command, asked) in
        [(Command::Hold, None), (Command::Land, Some(Mode::Land)), (Command::Return, Some(Mode::Rtl))]
    {
        let mut found = Found::left_on_route(mission());
        found.seconds(3);
        assert_eq!(found.bench.feed(Input::Operator { id: "x", command }), Some(Reply::Accepted));
        found.seconds(50);
        let asked: StdVec<_> = asked.into_iter().collect();
        assert_eq!(found.asked.iter().map(|(_, mode)| *mode).collect::<StdVec<_>>(), asked, "{command}");
    }
}

/// A record of two that fly north from here.
fn record() -> FlightRecord {
    let plan = wingbeat_wire::Plan {
        layout: 0,
        distance_mm: 50_000,
        landing_distance_mm: 10_000,
        heading_urad: 0,
        slots: [VehicleId(1), VehicleId(2)].into_iter().collect(),
        take_off_order: [0, 1].into_iter().collect(),
        waypoints: (0..3).map(point).collect(),
        offsets: Default::default(),
    };
    FlightRecord {
        flight: 7,
        plan,
        homes: [Some(Point { height_mm: 0, ..point(0) }), None].into_iter().collect(),
    }
}

/// The file is yesterday's, or that of today was not written: the guardian's word is of another flight.
#[test]
fn an_aircraft_whose_record_is_of_another_flight_lands_and_nothing_of_that_flight_counts() {
    let swarm = || muscop::Config::new(VehicleId(1), VehicleId(1), 2).into();
    let mut found = Found::new(swarm(), Before::OnRoute { modes: BRAKE, route: 1 << 63 | 1 << 20 });
    found.bench.feed(Input::Flight(&record()));
    assert!(found.bench.agent.flight_record().is_some(), "{:?}", found.bench.log);
    found.seconds(3);
    assert_eq!(found.asked.iter().map(|(_, mode)| *mode).collect::<StdVec<_>>(), [Mode::Land]);
    assert!(found.says("the flight is not taken up"), "{:?}", found.bench.log);
    assert!(found.bench.agent.flight_record().is_none());
}

/// The guardian keeps the aircraft, and lands it: this agent would not.
#[test]
fn one_that_takes_it_for_the_pilots_does_not_ask_to_have_it_back() {
    for is_pilots in [false, true] {
        let mut found = Found::new(mission(), Before::Unknown);
        if is_pilots {
            found.bench.feed(Input::TakenBefore { by: "mode LOITER" });
        }
        let known = KnownAutopilot { system_id: 1, is_armed: true };
        found.bench.feed(Input::KnownAutopilot { known, is_held: true });
        assert_eq!(found.bench.agent.pulse(found.bench.now).takes_up, u8::from(!is_pilots));
    }
}
