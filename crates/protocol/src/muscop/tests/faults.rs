//! Members that die, leave, stop, and receive nothing: no two aircraft come near each other, and all land.

use super::*;

/// Legs on which no aircraft passes the slot of another: at right angles to the row.
pub(super) fn straight_on(rig: &mut Rig) {
    straight_on_by(rig, &[0.0, 200.0, 400.0, 600.0]);
}

/// The same with waypoints so many metres ahead.
pub(super) fn straight_on_by(rig: &mut Rig, ahead_m: &[f64]) {
    let legs: StdVec<(f64, f64)> = ahead_m.iter().map(|&north_m| (0.0, north_m)).collect();
    let ahead = mission(&legs, 20.0);
    rig.craft[0].muscop.set_mission(&ahead, MissionExtras::NONE).unwrap();
}

#[test]
fn muscop_05_the_next_in_order_leads_when_the_centre_is_lost() {
    for dies_after_s in [0, 3, 12, 21, 30] {
        let mut rig = Rig::new(5, Layout::Linear, 4);
        straight_on(&mut rig);
        rig.set_up();
        rig.command_all(Command::Start);
        let center = rig.leader();
        assert_eq!(center, 2, "the middle one");
        for _ in 0..dies_after_s * 20 {
            rig.step();
        }
        rig.dead[center] = true;
        let order = rig.craft[0].muscop.swarm.assignment().plan().take_off_order.clone();
        let next = order.iter().rev().map(|&s| usize::from(s)).find(|&s| s != center).unwrap();
        rig.until("the others down", 300, Rig::all_down);
        for i in [0, 1, 3, 4] {
            assert_eq!(
                rig.craft[i].muscop.state_id(),
                StateId::Finished,
                "{i} after {dies_after_s} s: {:?}",
                rig.details()
            );
            assert_eq!(rig.craft[i].muscop.swarm.members().leader(), next);
        }
        assert!(rig.nearest.0 > 5.0, "{:?} after {dies_after_s} s", rig.nearest);
    }
}

#[test]
fn muscop_12_no_aircraft_flies_past_the_position_of_a_lost_member() {
    // The second leg leads along the row: past the position where the lost one hovers.
    for lost in 0..3 {
        let mut rig = Rig::new(3, Layout::Linear, 4);
        rig.set_up();
        rig.command_all(Command::Start);
        rig.until("first waypoint", 60, |r| r.craft.iter().all(|c| c.muscop.reached() == Some(1)));
        rig.dead[lost] = true;
        rig.until("the others down", 300, Rig::all_down);
        assert!(rig.nearest.0 > 5.0, "{lost}: {:?}", rig.nearest);
    }
}

#[test]
fn muscop_13_a_member_that_leaves_or_is_excluded_holds_others_up_no_longer() {
    // At the first waypoint one hangs; the operator excludes it, by the leader only.
    let mut rig = Rig::new(4, Layout::Linear, 3);
    straight_on(&mut rig);
    rig.set_up();
    rig.command_all(Command::Start);
    rig.until("first leg", 30, |r| r.all_in(StateId::MovingToWaypoint));
    rig.craft[3].order = None;
    let member = rig.craft[3].muscop.swarm.config().me;
    for _ in 0..20 * 60 {
        rig.step();
    }
    let leader = rig.leader();
    assert!(rig.craft[leader].muscop.permits(Command::Exclude { member: VehicleId(99) }).is_err());
    rig.craft[leader].muscop.permits(Command::Exclude { member }).unwrap();
    rig.feed(leader, Input::Operator(Command::Exclude { member }));
    rig.until("all down", 300, Rig::all_down);
    for i in 0..3 {
        assert_eq!(rig.craft[i].muscop.state_id(), StateId::Finished, "{i}: {:?}", rig.details());
    }
    assert!(rig.has_logged(3, "excluded by the operator"), "{:?}", rig.craft[3].log);
    assert!(rig.nearest.0 > 5.0, "{:?}", rig.nearest);
}

#[test]
fn muscop_13_of_several_excluded_each_receives_it_and_all_know_where_it_was_commanded() {
    // Two hang on the first leg; the operator excludes them at the leader only, and the first of them never answers.
    let mut rig = Rig::new(5, Layout::Linear, 3);
    straight_on(&mut rig);
    rig.set_up();
    rig.command_all(Command::Start);
    rig.until("first leg", 30, |r| r.all_in(StateId::MovingToWaypoint));
    let leader = rig.leader();
    let mut hang = (0..5).filter(|&i| i != leader);
    let (dead, other) = (hang.next().unwrap(), hang.next().unwrap());
    rig.craft[dead].order = None;
    rig.craft[other].order = None;
    rig.dead[dead] = true;
    for _ in 0..20 * 20 {
        rig.step();
    }
    let id = |i: usize, rig: &Rig| rig.craft[i].muscop.swarm.config().me;
    for member in [dead, other].map(|i| id(i, &rig)) {
        rig.feed(leader, Input::Operator(Command::Exclude { member }));
    }
    rig.until("the other leaves", 30, |r| r.craft[other].muscop.state_id() == StateId::Aborted);
    assert!(rig.has_logged(other, "excluded by the operator"), "{:?}", rig.craft[other].log);
    let by = id(leader, &rig);
    let left = id(other, &rig);
    let receives = |rig: &Rig, i: usize| {
        rig.craft[i].muscop.details().absentees.iter().any(|a| a.id == left && a.leaves.is_some())
    };
    rig.until("all receive it", 5, |r| (0..5).all(|i| i == dead || i == other || receives(r, i)));
    for i in (0..5).filter(|&i| i != dead && i != other) {
        let absentees = rig.craft[i].muscop.details().absentees;
        assert_eq!(absentees.len(), 2, "{i}: {absentees:?}");
        for absent in &absentees {
            assert_eq!(absent.excluded_by, Some(by), "{i}: {absent:?}");
            let is_dead = absent.id == id(dead, &rig);
            assert_eq!((absent.is_lost, absent.leaves.is_none()), (is_dead, is_dead), "{i}: {absent:?}");
        }
    }
}

#[test]
fn muscop_14_a_member_that_fails_to_arm_or_dies_in_the_take_off_does_not_stop_the_others() {
    for lost in 0..4 {
        for (dies, after_s) in [(false, 0), (true, 0), (true, 4), (true, 9), (true, 16)] {
            let mut rig = Rig::new(4, Layout::Linear, 3);
            straight_on(&mut rig);
            rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 4);
            rig.command_all(Command::Setup);
            if dies {
                rig.until("taking off", 60, |r| r.all_in(StateId::TakingOff));
                for _ in 0..after_s * 20 {
                    rig.step();
                }
                rig.dead[lost] = true;
            } else {
                rig.until("its turn", 120, |r| matches!(r.craft[lost].order, Some(Order::TakeOff { .. })));
                let order = rig.craft[lost].order.take().unwrap();
                rig.craft[lost].armed = false;
                rig.feed(lost, Input::Failed(order));
            }
            let others = || (0..4).filter(move |&i| i != lost);
            let context = std::format!("{lost} dies {dies} after {after_s} s");
            rig.until(&context, 400, |r| {
                others().all(|i| {
                    matches!(r.craft[i].muscop.state_id(), StateId::SetupFinished | StateId::Aborted)
                })
            });
            // Only those that the lost one blocks stay on the ground, or hold behind it and land.
            let stays = others().filter(|&i| rig.craft[i].muscop.state_id() == StateId::Aborted);
            let is_blocked =
                |rig: &Rig, i| rig.has_logged(i, "blocks the path") || rig.has_logged(i, "stays ahead");
            let stays = stays.inspect(|&i| assert!(is_blocked(&rig, i), "{context}: {i}")).count();
            assert!(stays <= usize::from(dies) * 2, "{context}: {:?}", rig.details());
            for i in others() {
                if rig.craft[i].muscop.permits(Command::Start).is_ok() {
                    rig.feed(i, Input::Operator(Command::Start));
                }
            }
            rig.until(&context, 400, |r| others().all(|i| !r.craft[i].armed));
            assert!(rig.nearest.0 > 5.0, "{context}: {:?}", rig.nearest);
        }
    }
}

/// Two halves that do not receive each other for a while; both fly on, and no half has two leaders for longer than the
/// time to live.
#[test]
fn muscop_15_partitions_never_keep_two_leaders() {
    use rand_core::Rng as _;
    for seed in 0..20 {
        let mut rng = rand_pcg::Pcg64Mcg::new(seed);
        let mut rig = Rig::new(6, Layout::Linear, seed as u64);
        straight_on(&mut rig);
        rig.set_up();
        rig.command_all(Command::Start);
        let mut groups = 0u64;
        let mut two_since: Option<Instant> = None;
        let mut changes_at = rig.now;
        let end = rig.now + Duration::from_secs(400);
        while !rig.all_down() && rig.now < end {
            if rig.now >= changes_at {
                groups = if groups == 0 { rng.next_u64() & 63 } else { 0 };
                rig.receives = Box::new(move |_, from, to| groups >> from & 1 == groups >> to & 1);
                changes_at = rig.now + Duration::from_millis(2_000 + rng.next_u64() % 30_000);
                two_since = None;
            }
            rig.step();
            let leads = |i: usize| {
                let m = &rig.craft[i].muscop;
                m.swarm.is_leader() && matches!(m.swarm.state(), State::Flying(_))
            };
            let two =
                (0..2u64).any(|side| (0..6).filter(|&i| groups >> i & 1 == side && leads(i)).count() > 1);
            two_since = two.then(|| two_since.unwrap_or(rig.now));
            if let Some(since) = two_since {
                assert!(
                    rig.now.since(since) <= Duration::from_millis(5_500),
                    "seed {seed}: {:?}",
                    rig.details()
                );
            }
        }
        assert!(rig.all_down(), "seed {seed}: {:?}", rig.details());
        assert!(rig.nearest.0 > 5.0, "seed {seed}: {:?}", rig.nearest);
    }
}

/// Legs of which the second and the last lead along the row: all fly through the positions of others.
pub(super) fn along_the_row(rig: &mut Rig) {
    let legs = mission(&[(0.0, 0.0), (0.0, 100.0), (200.0, 100.0), (200.0, 200.0), (0.0, 200.0)], 20.0);
    rig.craft[0].muscop.set_mission(&legs, MissionExtras::NONE).unwrap();
}

#[test]
fn muscop_16_no_aircraft_flies_through_the_position_of_one_that_has_not_left() {
    for seed in 0..12u64 {
        let mut rig = Rig::new(5, Layout::Linear, seed);
        along_the_row(&mut rig);
        rig.set_up();
        rig.command_all(Command::Start);
        // One after the other receives nothing for four of twenty seconds, and a quarter of the rest is lost.
        let begun = rig.now;
        while !rig.all_down() {
            assert!(rig.now.since(begun) < Duration::from_secs(900), "seed {seed}: {:?}", rig.details());
            let deaf = (rig.now.since(begun).as_millis() as u64 / 4_000 + seed) % 5;
            rig.receives = Box::new(move |n, _, to| {
                to as u64 != deaf && (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed) >> 33 & 3 != 0
            });
            rig.step();
        }
        // One that receives nothing for too long lands where it is.
        for i in 0..5 {
            assert!(
                rig.craft[i].muscop.state_id() == StateId::Finished || rig.has_logged(i, "lands here"),
                "seed {seed}, {i}: {:?}",
                rig.craft[i].log
            );
        }
        assert!(rig.nearest.0 > 5.0, "seed {seed}: {:?}", rig.nearest);
    }
}

#[test]
fn muscop_17_no_aircraft_flies_into_one_that_stops_ahead() {
    for stops in 0..5 {
        for (after_s, dead) in [(3, false), (7, false), (3, true), (7, true)] {
            let mut rig = Rig::new(5, Layout::Linear, 1);
            along_the_row(&mut rig);
            rig.set_up();
            rig.command_all(Command::Start);
            rig.until("the leg along the row", 120, |r| {
                r.craft.iter().any(|c| c.muscop.view().target.is_some() && c.muscop.reached() == Some(1))
            });
            for _ in 0..after_s * 20 {
                rig.step();
            }
            if dead {
                rig.dead[stops] = true;
                rig.craft[stops].order = Some(Order::Hold);
            } else {
                rig.feed(stops, Input::Operator(Command::Hold));
            }
            let others = || (0..5).filter(move |&i| i != stops);
            let context = std::format!("{stops} stops after {after_s} s, dead {dead}");
            rig.until(&context, 900, |r| others().all(|i| !r.craft[i].armed));
            assert!(rig.nearest.0 > 5.0, "{context}: {:?}", rig.nearest);
        }
    }
}

/// Behind one that flies on 24 m ahead none holds; behind the same one, at the same position, once it reports that it
/// holds.
#[test]
fn muscop_17_those_behind_one_that_reports_that_it_holds_hold_at_once() {
    let mut rig = Rig::new(5, Layout::Linear, 1);
    along_the_row(&mut rig);
    rig.set_up();
    rig.command_all(Command::Start);
    rig.until("the leg along the row", 120, |r| {
        r.craft
            .iter()
            .all(|c| c.muscop.state_id() == StateId::MovingToWaypoint && c.muscop.reached() == Some(1))
    });
    let (behind, ahead) = (rig.leader(), (rig.leader() + 1) % 5);
    rig.receives = Box::new(move |_, from, to| (from, to) != (ahead, behind));
    let reports = |rig: &mut Rig, gap_m: f64, message: fn(Point) -> Message| {
        let craft = &rig.craft[behind];
        let position = craft.frame.to_position(craft.at + DVec3::new(gap_m, 0.0, 0.0));
        let at = plan::point(position, (craft.at.z * 1e3) as i32);
        let swarm = &rig.craft[ahead].muscop.swarm;
        let (from, flight) = (swarm.config().me, swarm.assignment().flight());
        rig.feed(behind, Input::Message { from, flight, message: &message(at) });
    };
    // At 8 m/s, before one at 10 m/s that comes closer.
    for n in 0..40 {
        (0..4).for_each(|_| rig.step());
        reports(&mut rig, 40.0 - 0.4 * f64::from(n), |at| Message::Alive { at });
    }
    assert!(matches!(rig.craft[behind].order, Some(Order::FlyTo(_))), "{:?}", rig.craft[behind].orders);
    reports(&mut rig, 24.4, |at| Message::Holding { at });
    assert_eq!(rig.craft[behind].order, Some(Order::Hold));
}

/// One that received no other flew on alone. When it receives the others again, its leg is no command of their leader:
/// they still wait for their slowest.
#[test]
fn muscop_22_one_that_flew_on_alone_passes_on_no_command() {
    let mut rig = Rig::new(5, Layout::Linear, 4);
    straight_on(&mut rig);
    rig.set_up();
    rig.command_all(Command::Start);
    rig.until("first leg", 30, |r| r.all_in(StateId::MovingToWaypoint));
    let center = rig.leader();
    let alone = (0..5).rfind(|&i| i != center).unwrap();
    let slow = (0..5).find(|&i| i != center).unwrap();
    let order = rig.craft[slow].order.take();
    rig.receives = Box::new(move |_, from, to| from != alone && to != alone);
    rig.until("on alone", 60, |r| {
        r.craft[alone].muscop.reached() == Some(1)
            && r.craft[alone].muscop.state_id() == StateId::MovingToWaypoint
    });
    rig.receives = Box::new(|_, _, _| true);
    for _ in 0..20 * 15 {
        rig.step();
        for i in (0..5).filter(|&i| i != alone && i != slow) {
            assert_eq!(rig.craft[i].muscop.state_id(), StateId::WaypointReached, "aircraft {i}");
        }
    }
    rig.craft[slow].order = order;
    rig.until("landing", 300, |r| r.all_in(StateId::Finished));
}

/// The first of the take-off received no other from before it left until it hovered in its slot: the others, which
/// waited on the ground for its answer, get it then.
#[test]
fn muscop_22_one_that_is_long_in_its_slot_still_answers_those_on_the_ground() {
    let mut rig = Rig::new(3, Layout::Linear, 4);
    // The master in the middle has the shortest path, and is the last.
    (rig.craft[0].at, rig.craft[1].at) = (rig.craft[1].at, rig.craft[0].at);
    rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 3);
    rig.command_all(Command::Setup);
    rig.until("plan", 10, |r| r.craft.iter().any(|c| c.muscop.state_id() == StateId::ReadyToFly));
    let plan = &rig.craft[0].muscop.swarm.assignment().plan();
    let first = usize::from(plan.take_off_order[0]);
    let first = rig.craft.iter().position(|c| c.muscop.swarm.assignment().slot() == first).unwrap();
    assert_ne!(first, 0, "the master has recorded that no member answered");
    rig.until("ready", 10, |r| r.craft[first].muscop.state_id() == StateId::ReadyToFly);
    rig.receives = Box::new(move |_, from, to| from != first && to != first);
    rig.until("up alone", 120, |r| r.craft[first].muscop.state_id() == StateId::SetupFinished);
    rig.receives = Box::new(|_, _, _| true);
    rig.until("setup", 120, |r| r.all_in(StateId::SetupFinished));
    assert!(rig.nearest.0 > 5.0, "{:?}", rig.nearest);
}

#[test]
fn muscop_02_a_follower_waits_for_one_that_it_receives_though_its_leader_has_lost_it() {
    let mut rig = Rig::new(4, Layout::Linear, 4);
    straight_on(&mut rig);
    rig.set_up();
    rig.command_all(Command::Start);
    let leader = rig.leader();
    let mut others = (0..4).filter(|&i| i != leader);
    let (slow, waits) = (others.next().unwrap(), others.next().unwrap());
    rig.until("first leg", 60, |r| r.all_in(StateId::MovingToWaypoint));
    // Of the slow one the leader receives nothing.
    rig.receives = Box::new(move |_, from, to| from != slow || to != leader);
    let order = rig.craft[slow].order.take();
    rig.until("the leader leaves", 200, |r| {
        let leader = &r.craft[leader].muscop;
        leader.reached() == Some(1) && leader.state_id() == StateId::MovingToWaypoint
    });
    (0..100).for_each(|_| rig.step());
    assert_eq!(rig.craft[waits].muscop.state_id(), StateId::WaypointReached, "{:?}", rig.details());
    rig.craft[slow].order = order;
    rig.until("it follows", 100, |r| r.craft[waits].muscop.reached() == Some(2));
}

#[test]
fn muscop_02_a_follower_waits_for_one_that_it_receives_a_few_metres_short_of_the_waypoint() {
    let mut rig = Rig::new(4, Layout::Linear, 4);
    straight_on(&mut rig);
    rig.set_up();
    rig.command_all(Command::Start);
    let leader = rig.leader();
    let mut others = (0..4).filter(|&i| i != leader);
    let (slow, waits) = (others.next().unwrap(), others.next().unwrap());
    rig.until("first leg", 60, |r| r.all_in(StateId::MovingToWaypoint));
    rig.receives = Box::new(move |_, from, to| from != slow || to != leader);
    let Some(Order::FlyTo(there)) = rig.craft[slow].order else { panic!("{:?}", rig.craft[slow].orders) };
    let off_m = |r: &Rig| {
        let (at, geometry) = (
            r.craft[slow].muscop.swarm.ownship().point().unwrap(),
            r.craft[slow].muscop.swarm.assignment().geometry(),
        );
        geometry.offset_m(at, there).length()
    };
    rig.until("near", 60, |r| off_m(r) < 4.5);
    let order = rig.craft[slow].order.take();
    rig.until("the leader leaves", 200, |r| {
        let leader = &r.craft[leader].muscop;
        leader.reached() == Some(1) && leader.state_id() == StateId::MovingToWaypoint
    });
    (0..100).for_each(|_| rig.step());
    assert_eq!(rig.craft[waits].muscop.state_id(), StateId::WaypointReached, "{:?}", rig.details());
    rig.craft[slow].order = order;
    rig.until("it follows", 100, |r| r.craft[waits].muscop.reached() == Some(2));
}
