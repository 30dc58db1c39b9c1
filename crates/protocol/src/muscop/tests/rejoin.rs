//! Members whose companions die in flight and are started again: they rejoin their swarm, and all land together.

use super::faults::straight_on;
use super::*;
use crate::swarm::FlightRecord;

/// What the guardian and the disk keep of an aircraft whose companion died.
struct Left {
    record: FlightRecord,
    on: Option<u64>,
}

impl Rig {
    /// The companion dies, and the guardian stops the aircraft.
    fn kill(&mut self, i: usize) -> Left {
        let craft = &mut self.craft[i];
        let left = Left { record: craft.muscop.flight_record().unwrap(), on: craft.muscop.left_on() };
        craft.order = None;
        self.dead[i] = true;
        left
    }

    /// Another begins, with what is left of it. Whether it rejoins.
    fn begin_again(&mut self, i: usize, left: &Left) -> bool {
        self.dead[i] = false;
        let now = self.now;
        let craft = &mut self.craft[i];
        craft.muscop = Muscop::new(craft.config.clone(), 99 + i as u64, now);
        craft.passing = Passing::default();
        assert!(craft.muscop.remember(now, Some(&left.record)));
        assert!(craft.muscop.takes_up());
        let telemetry = craft.telemetry(DVec3::ZERO);
        self.feed(i, Input::Telemetry(telemetry));
        let mut out = Actions::new();
        let craft = &mut self.craft[i];
        let rejoins = craft.muscop.rejoin(now, left.on.unwrap_or(1), &mut out);
        for action in out {
            match action {
                Action::Order(order) => {
                    craft.order = Some(order);
                    craft.orders.push((now, order));
                }
                Action::Log(severity, line) => craft.log.push((now, severity, line)),
                Action::Broadcast { .. } | Action::PassOn | Action::Refused(_) => panic!("{action:?}"),
            }
        }
        rejoins
    }

    fn seconds(&mut self, seconds: u64) {
        for _ in 0..seconds * 20 {
            self.step();
        }
    }
}

#[test]
fn muscop_36_a_member_whose_companion_was_restarted_rejoins_and_all_land_in_formation() {
    // The centre is in slot 2. Dead for less than the time to live, for longer, and as long as the guardian holds.
    for (dies, dies_after_s, dead_s) in
        [(0, 3, 2), (0, 12, 8), (4, 21, 8), (1, 30, 2), (2, 3, 2), (2, 12, 8), (2, 21, 8), (2, 45, 9)]
    {
        let what = std::format!("{dies} after {dies_after_s} s for {dead_s} s");
        let mut rig = Rig::new(5, Layout::Linear, 4);
        straight_on(&mut rig);
        rig.set_up();
        rig.command_all(Command::Start);
        rig.seconds(dies_after_s);
        let left = rig.kill(dies);
        assert!(left.on.is_some(), "{what}: {:?}", rig.details());
        rig.seconds(dead_s);
        assert!(rig.begin_again(dies, &left), "{what}");
        // It stands and says so before it moves.
        let at = rig.craft[dies].at;
        rig.seconds(1);
        assert!(rig.craft[dies].at.distance(at) < 0.1, "{what}");
        rig.until("landing", 400, |r| r.all_in(StateId::Finished));
        assert!(rig.nearest.0 > 5.0, "{what}: {:?}", rig.nearest);
        assert!(rig.has_logged(dies, "rejoins its swarm"));
        for a in 0..5 {
            for b in 0..a {
                let apart = rig.craft[a].at.distance(rig.craft[b].at);
                assert!(apart > 8.0 && apart < 60.0, "{what}: {a} and {b} are {apart} m apart");
            }
        }
    }
}

#[test]
fn muscop_36_an_excluded_member_that_rejoins_learns_it_and_leaves() {
    let mut rig = Rig::new(4, Layout::Linear, 3);
    straight_on(&mut rig);
    rig.set_up();
    rig.command_all(Command::Start);
    rig.seconds(3);
    let left = rig.kill(3);
    let member = rig.craft[3].muscop.swarm.config().me;
    rig.seconds(6);
    let leader = rig.leader();
    rig.feed(leader, Input::Operator(Command::Exclude { member }));
    rig.seconds(1);
    assert!(rig.begin_again(3, &left));
    rig.until("it leaves", 5, |r| r.craft[3].muscop.state_id() == StateId::Aborted);
    rig.until("all down", 300, Rig::all_down);
    assert!((0..3).all(|i| rig.craft[i].muscop.state_id() == StateId::Finished), "{:?}", rig.details());
    assert!(rig.nearest.0 > 5.0, "{:?}", rig.nearest);
}

#[test]
fn muscop_36_an_aircraft_that_was_recalled_takes_off_or_lands_is_not_left_on_its_route() {
    let mut rig = Rig::new(3, Layout::Linear, 4);
    straight_on(&mut rig);
    assert!(rig.craft[1].muscop.flight_record().is_none() && rig.craft[1].muscop.left_on().is_none());
    rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 3);
    rig.command_all(Command::Setup);
    rig.until("take-off", 60, |r| r.all_in(StateId::TakingOff));
    assert!(rig.craft[1].muscop.left_on().is_none(), "on its way to its slot");
    rig.until("setup", 300, |r| r.all_in(StateId::SetupFinished));
    assert!(rig.craft[1].muscop.left_on().is_none(), "before the start");
    let record = rig.craft[1].muscop.flight_record().unwrap();
    assert!(record.homes.iter().all(Option::is_some), "{:?}", record.homes);
    rig.command_all(Command::Start);
    rig.seconds(1);
    let (at, to) = (rig.craft[1].muscop.left_on(), rig.details());
    assert!(at.is_some(), "{to:?}");
    rig.feed(1, Input::Operator(Command::Hold));
    assert!(rig.craft[1].muscop.left_on().is_none(), "held by its operator");
    rig.until("others land", 300, |r| r.craft[0].muscop.state_id() == StateId::Landing);
    assert!(rig.craft.iter().all(|craft| craft.muscop.left_on().is_none()));
}

#[test]
fn muscop_36_a_record_that_is_not_this_flights_is_not_taken_and_none_outlives_the_first_heartbeat() {
    let mut rig = Rig::new(3, Layout::Linear, 4);
    straight_on(&mut rig);
    rig.set_up();
    rig.command_all(Command::Start);
    rig.seconds(3);
    let left = rig.kill(1);
    let now = rig.now;
    let begin = |change: &dyn Fn(&mut Config)| {
        let mut config = rig.craft[1].config.clone();
        change(&mut config);
        Muscop::new(config, 1, now)
    };
    // Another aircraft's, and one that this configuration may not fly.
    assert!(!begin(&|config| config.swarm.me = VehicleId(77)).remember(now, Some(&left.record)));
    assert!(!begin(&|config| config.swarm.height_most_m = 10.0).remember(now, Some(&left.record)));
    let mut none = FlightRecord { flight: 0, ..left.record.clone() };
    assert!(!begin(&|_| {}).remember(now, Some(&none)));
    none = left.record.clone();
    none.homes.clear();
    assert!(begin(&|_| {}).remember(now, Some(&none)), "whose homes are not known");
    // The key of another flight, of a waypoint that the route has not, and of an aircraft that stands.
    let telemetry = rig.craft[1].telemetry(DVec3::ZERO);
    let key = left.on.unwrap();
    let rejoins = |key: u64, telemetry: Telemetry| {
        let mut muscop = begin(&|_| {});
        assert!(muscop.remember(now, Some(&left.record)));
        assert!(!muscop.remember(now, Some(&left.record)), "once");
        muscop.handle(now, Input::Telemetry(telemetry), &mut Actions::new());
        muscop.rejoin(now, key, &mut Actions::new())
    };
    assert!(rejoins(key, telemetry));
    assert!(!rejoins(key ^ 1 << 40, telemetry));
    assert!(!rejoins(key | 0x7fff, telemetry));
    assert!(!rejoins(key, Telemetry { armed: false, ..telemetry }));
    // Forgotten, it is as if there had been none.
    let mut muscop = begin(&|_| {});
    assert!(muscop.remember(now, Some(&left.record)) && muscop.takes_up());
    muscop.remember(now, None);
    assert!(!muscop.takes_up() && muscop.flight_record().is_none() && muscop.details().plan_hash.is_none());
    muscop.handle(now, Input::Telemetry(telemetry), &mut Actions::new());
    assert!(!muscop.rejoin(now, key, &mut Actions::new()));
}

/// Two whose companions die at once, of which one flies behind the other: the one that begins again does not know where the other
/// was stopped, and does not fly there.
#[test]
fn muscop_36_one_that_rejoins_does_not_fly_through_one_that_it_has_not_received() {
    for dead_s in [1, 3, 6] {
        let mut rig = Rig::new(3, Layout::Linear, 4);
        rig.set_up();
        rig.command_all(Command::Start);
        // The second leg leads along the row.
        let mut row = [0, 1, 2];
        row.sort_by(|&a: &usize, &b| rig.craft[a].at.x.total_cmp(&rig.craft[b].at.x));
        let [_, behind, ahead] = row;
        let from_m = rig.craft[behind].at.x;
        rig.until("on the leg", 100, |r| r.craft[behind].at.x > from_m + 60.0);
        let left = rig.kill(behind);
        rig.kill(ahead);
        rig.seconds(dead_s);
        assert!(rig.begin_again(behind, &left));
        rig.until("down", 400, Rig::all_down);
        assert!(rig.nearest.0 > 5.0, "{dead_s} s: {:?}", rig.nearest);
        assert!(rig.has_logged(behind, "another stays ahead on the leg"), "{:?}", rig.details());
    }
}

/// While the aircraft is not known yet, messages of the flight that may turn out to be over are received.
#[test]
fn muscop_36_of_a_flight_that_is_forgotten_nothing_is_left() {
    use core::hash::Hasher as _;
    let mut rig = Rig::new(3, Layout::Linear, 4);
    straight_on(&mut rig);
    rig.set_up();
    rig.command_all(Command::Start);
    rig.seconds(3);
    let (left, now) = (rig.kill(1), rig.now);
    let flight = left.record.flight;
    let at = rig.craft[0].telemetry(DVec3::ZERO).point();
    let fingerprint = |muscop: &Muscop| {
        let mut hasher = std::hash::DefaultHasher::new();
        muscop.swarm.fingerprint(now, &mut hasher);
        muscop.barrier.fingerprint(now.since(muscop.barrier.led_since()).as_millis() as u64, &mut hasher);
        hasher.finish()
    };
    let new = Muscop::new(rig.craft[1].config.clone(), 99, now);
    let center = rig.craft[rig.leader()].muscop.swarm.config().me;
    for (from, message) in [
        (center, Message::Recall),
        (center, Message::LandHere { at }),
        (center, Message::Land { at }),
        (center, Message::MoveToWaypoint { waypoint: 3 }),
        (center, Message::Exclude { member: VehicleId(12) }),
        (VehicleId(10), Message::ReadyToFly),
        (VehicleId(12), Message::DataAck { hash: 7 }),
        (VehicleId(12), Message::Leaving { at, how: wingbeat_wire::Ending::Landing }),
        (VehicleId(12), Message::Following { waypoint: 2, reached: true, leader: 0, at }),
    ] {
        let mut muscop = new.clone();
        assert!(muscop.remember(now, Some(&left.record)));
        muscop.handle(now, Input::Message { from, flight, message: &message }, &mut Actions::new());
        muscop.remember(now, None);
        assert_eq!(fingerprint(&muscop), fingerprint(&new), "{message:?}");
        assert_eq!(muscop.swarm.timers(), new.swarm.timers(), "{message:?}");
        assert_eq!(muscop.permits(Command::Setup), new.permits(Command::Setup), "{message:?}");
    }
}

/// A file may hold anything.
#[test]
fn muscop_36_a_record_that_contradicts_itself_is_refused() {
    let mut rig = Rig::new(3, Layout::Linear, 4);
    straight_on(&mut rig);
    rig.set_up();
    let (record, now) = (rig.craft[1].muscop.flight_record().unwrap(), rig.now);
    let nowhere = Point { latitude_e7: i32::MIN, longitude_e7: i32::MAX, height_mm: i32::MIN };
    let changes: [fn(&mut FlightRecord, Point); 13] = [
        |r, _| r.plan.waypoints.clear(),
        |r, _| r.plan.slots.clear(),
        |r, _| r.plan.take_off_order.clear(),
        |r, _| r.plan.take_off_order[0] = 200,
        |r, _| r.plan.take_off_order[0] = r.plan.take_off_order[1],
        |r, _| r.plan.take_off_order.push(0).unwrap(),
        |r, _| r.plan.slots[0] = r.plan.slots[1],
        |r, _| r.plan.slots.truncate(2),
        |r, _| r.plan.layout = 200,
        |r, _| r.plan.distance_mm = 0,
        |r, nowhere| r.plan.waypoints[1] = nowhere,
        |r, nowhere| r.homes.push(Some(nowhere)).unwrap(),
        |r, nowhere| r.homes[0] = Some(nowhere),
    ];
    for (n, change) in changes.iter().enumerate() {
        let mut changed = record.clone();
        change(&mut changed, nowhere);
        let mut muscop = Muscop::new(rig.craft[1].config.clone(), 1, now);
        assert!(!muscop.remember(now, Some(&changed)), "change {n}");
        assert!(!muscop.takes_up() && muscop.flight_record().is_none(), "change {n}");
        assert!(muscop.remember(now, Some(&record)), "after change {n}");
    }
}

/// As when the same fault ends all daemons: each begins again in its time, and none remembers where the others were.
#[test]
fn muscop_36_all_whose_companions_are_restarted_at_once_rejoin() {
    let mut all_land = 0;
    for (seed, dies_after_s) in (0..).zip([1, 4, 9, 16, 22, 25, 30, 34, 38, 42]) {
        for layout in [Layout::Linear, Layout::Matrix] {
            let mut rig = Rig::new(5, layout, seed);
            rig.set_up();
            rig.command_all(Command::Start);
            rig.seconds(dies_after_s);
            rig.receives = Box::new(|n, from, to| !scramble(n, from, to).is_multiple_of(5));
            let left: StdVec<Left> = (0..5).map(|i| rig.kill(i)).collect();
            // Where one was landing already, none of this is for it.
            if left.iter().any(|left| left.on.is_none()) {
                continue;
            }
            for (i, left) in left.iter().enumerate() {
                rig.seconds(1 + scramble(seed, i, 0) % 3);
                assert!(rig.begin_again(i, left));
            }
            let what = std::format!("{layout:?} after {dies_after_s} s");
            rig.until(&what, 900, Rig::all_down);
            assert!(rig.nearest.0 > 5.0, "{what}: {:?} {:?}", rig.nearest, rig.details());
            all_land += usize::from(rig.all_in(StateId::Finished));
        }
    }
    assert!(all_land >= 10, "{all_land} flights are completed");
}
