//! Returning: each in a layer of its own, and none through the column of another.

use super::*;
use crate::EndFlight;

/// All in the air are ordered to return, at any time of a flight.
#[test]
fn muscop_20_all_return_at_once_each_in_its_own_layer() {
    for layout in [Layout::Linear, Layout::Matrix, Layout::Circular] {
        for after_s in [0, 2, 5, 9, 14, 21, 28, 35] {
            let mut rig = Rig::new(5, layout, 3);
            rig.set_up();
            rig.command_all(Command::Start);
            for _ in 0..after_s * 20 {
                rig.step();
            }
            rig.command_all(Command::Return);
            let mut highest = [0.0f64; 5];
            let end = rig.now + Duration::from_secs(400);
            while !rig.all_down() {
                assert!(rig.now < end, "{:?}", rig.details());
                rig.step();
                for (highest, craft) in highest.iter_mut().zip(&rig.craft) {
                    *highest = highest.max(craft.at.z);
                }
            }
            let context = std::format!("{layout} after {after_s} s");
            assert!(rig.nearest.0 > 5.0, "{context}: {:?}", rig.nearest);
            for craft in &rig.craft {
                assert!(craft.at.distance(craft.home) < 4.0, "{context}: not at home: {:?}", rig.details());
            }
            // Above the highest waypoint, and no two in one layer. One that is above its home lands there.
            highest.sort_by(f64::total_cmp);
            let returned: StdVec<_> = highest.iter().filter(|h| **h > 21.0).collect();
            assert!(returned.len() >= 4 && *returned[0] > 28.0, "{context}: {highest:?}");
            assert!(returned.windows(2).all(|w| w[1] - w[0] > 7.5), "{context}: {highest:?}");
        }
    }
}

/// One is ordered to return, the others continue: past its climb, which none crosses, and under its path home.
#[test]
fn muscop_20_one_returns_and_the_others_complete_the_mission() {
    for after_s in [0, 3, 9, 15, 22, 29, 36] {
        for member in 0..5 {
            let mut rig = Rig::new(5, Layout::Linear, 3);
            rig.set_up();
            rig.command_all(Command::Start);
            for _ in 0..after_s * 20 {
                rig.step();
            }
            rig.feed(member, Input::Operator(Command::Return));
            rig.until("all down", 900, Rig::all_down);
            let context = std::format!("{member} after {after_s} s");
            assert!(rig.nearest.0 > 5.0, "{context}: {:?}", rig.nearest);
            assert!(rig.craft[member].at.distance(rig.craft[member].home) < 1.0, "{context}: not at home");
        }
    }
}

/// In the middle of the take-off one is ordered to return: those on the ground wait for it, and it waits for those
/// that are on their way.
#[test]
fn muscop_20_one_returns_while_the_others_take_off() {
    for layout in [Layout::Linear, Layout::Circular] {
        for after_s in (2..40).step_by(6) {
            for member in 0..5 {
                let mut rig = Rig::new(5, layout, 3);
                rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 5);
                rig.command_all(Command::Setup);
                rig.until("taking off", 30, |r| r.all_in(StateId::TakingOff));
                for _ in 0..after_s * 20 {
                    rig.step();
                }
                let flies = rig.craft[member].armed;
                rig.feed(member, Input::Operator(Command::Return));
                let context = std::format!("{layout}: {member} after {after_s} s");
                let settled = |r: &Rig, i: usize| {
                    let c = &r.craft[i];
                    i == member && !c.armed
                        || i != member
                            && matches!(c.muscop.state_id(), StateId::SetupFinished | StateId::Aborted)
                };
                rig.until(&context, 600, |r| (0..5).all(|i| settled(r, i)));
                assert!(rig.nearest.0 > 5.0, "{context}: {:?}", rig.nearest);
                // Above its home another may hover in its slot, and no operator presses *Start* here.
                let off_m = rig.craft[member].at.distance(rig.craft[member].home);
                let is_blocked = rig.has_logged(member, "the path home stays blocked: lands here");
                let nearly = if is_blocked { 25.0 } else { 1.0 };
                assert!(!flies || off_m < nearly, "{context}: {off_m} m from home");
            }
        }
    }
}

/// Where the fence leaves room for two layers, the third shares the lowest: it holds until the other is down.
#[test]
fn muscop_21_one_without_a_layer_of_its_own_waits_and_then_lands() {
    for patience_s in [60, 5] {
        let mut rig = Rig::new(3, Layout::Linear, 3);
        rig.configure_all(|c| {
            // 20 m, 10.5 m above, and 8 m more.
            c.height_most_m = 39.0;
            c.hold_before_landing = Duration::from_secs(patience_s);
        });
        rig.set_up();
        let heights: StdVec<_> =
            rig.craft.iter().map(|c| c.muscop.view().return_height_mm.unwrap_or_default()).collect();
        assert_eq!(heights.iter().filter(|h| **h == 30_500).count(), 2, "{heights:?}");
        rig.command_all(Command::Start);
        rig.until("first waypoint", 60, |r| r.craft.iter().all(|c| c.muscop.reached() == Some(1)));
        rig.command_all(Command::Return);
        let turn = |rig: &Rig, i: usize| {
            rig.craft[i].muscop.swarm.assignment().take_off_index().map(|turn| 2 - turn)
        };
        let last = (0..3).find(|&i| turn(&rig, i) == Some(2)).unwrap();
        let first = (0..3).find(|&i| turn(&rig, i) == Some(0)).unwrap();
        assert_eq!(rig.craft[last].order.or(Some(Order::Hold)), Some(Order::Hold));
        rig.until("first down", 300, |r| !r.craft[first].armed || !r.craft[last].armed);
        rig.until("all down", 600, Rig::all_down);
        assert!(rig.nearest.0 > 5.0, "{:?}", rig.nearest);
        let begins = rig.craft[last].orders.iter().find(|(_, o)| *o == Order::Return);
        if patience_s == 60 {
            let down_at =
                rig.craft[first].log.iter().find(|(_, _, l)| l.contains("on the ground")).unwrap().0;
            assert!(begins.unwrap().0 > down_at, "it waits until the other is down");
        } else {
            assert!(begins.is_none());
            assert!(
                rig.has_logged(last, "the path home stays blocked: lands here"),
                "{:?}",
                rig.craft[last].log
            );
        }
    }
}

#[test]
fn muscop_21_without_room_for_a_layer_a_return_is_refused() {
    let mut rig = Rig::new(3, Layout::Linear, 3);
    rig.configure_all(|c| c.height_most_m = 30.0);
    rig.set_up();
    let refused = rig.craft[0].muscop.permits(Command::Return).unwrap_err().to_string();
    assert!(refused.contains("no height above the waypoints is left for returns below 30 m"), "{refused}");
    rig.craft[0].muscop.permits(Command::Land).unwrap();
}

/// One has landed, or still lands, where the leader is to land: that one lands aside.
#[test]
fn muscop_20_the_leader_does_not_land_on_one_that_stands_there() {
    for is_down in [true, false] {
        let mut rig = Rig::new(3, Layout::Linear, 4);
        rig.set_up();
        rig.command_all(Command::Start);
        let leader = rig.leader();
        let other = (leader + 1) % 3;
        rig.until("first waypoint", 60, |r| r.craft.iter().all(|c| c.muscop.reached() == Some(1)));
        rig.until("last leg", 60, |r| {
            r.craft.iter().all(|c| c.muscop.state_id() == StateId::MovingToWaypoint)
        });
        // 2 m from where the leader will be, below its downwash: within that the leader would wait
        // until it is down.
        let place = plan::moved(*rig.craft[leader].muscop.route().last().unwrap(), 2.0, 0.0);
        let (latitude_e7, longitude_e7) = (place.latitude_e7, place.longitude_e7);
        let there = rig.craft[other].frame.to_local(Position { latitude_e7, longitude_e7, altitude_mm: 0 });
        rig.feed(other, Input::Operator(Command::Land));
        let height_m = if is_down { 0.0 } else { 4.0 };
        rig.craft[other].at = DVec3::new(there.x, there.y, height_m);
        rig.craft[other].armed = !is_down;
        if !is_down {
            rig.craft[other].order = None; // it hangs for a while
        }
        rig.nearest.0 = f64::INFINITY;
        rig.until("the leader at the last", 60, |r| r.craft[leader].muscop.reached() == Some(2));
        rig.craft[other].order = Some(Order::Land);
        rig.until("all down", 400, Rig::all_down);
        let apart_m = rig.craft[leader].at.distance(rig.craft[other].at);
        assert!(apart_m > 6.0, "{apart_m} m: {:?}", rig.details());
        assert!(rig.nearest.0 > 5.0, "{:?}", rig.nearest);
    }
}

/// One whose radio fails while it climbs is ordered to return: it never receives that its column is clear, and lands on
/// its home all the same, after it has received no other for twice the time that it holds.
#[test]
fn muscop_21_one_that_receives_no_other_returns_after_twice_its_hold() {
    for member in 0..5 {
        let mut rig = Rig::new(5, Layout::Linear, 3);
        rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 5);
        rig.command_all(Command::Setup);
        rig.until("it climbs", 120, |r| r.craft[member].at.z > 1.0);
        rig.receives = Box::new(move |_, from, to| from != member && to != member);
        for _ in 0..200 {
            rig.step();
        }
        rig.feed(member, Input::Operator(Command::Return));
        rig.until("it is down", 300, |r| !r.craft[member].armed);
        assert!(rig.craft[member].at.distance(rig.craft[member].home) < 1.0, "{member}: not at home");
        assert!(rig.nearest.0 > 5.0, "{member}: {:?}", rig.nearest);
    }
}

/// In the take-off, in the slots and on the legs, with half of the datagrams lost.
#[test]
fn muscop_34_the_battery_of_one_ends_the_flight_of_all() {
    for (member, after_s) in [(0, 2), (1, 9), (4, 20), (2, 30), (3, 55)] {
        let mut rig = Rig::new(5, Layout::Linear, 3);
        rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 5);
        rig.command_all(Command::Setup);
        rig.until("taking off", 30, |r| r.all_in(StateId::TakingOff));
        for _ in 0..after_s * 20 {
            if rig.all_in(StateId::SetupFinished) {
                rig.command_all(Command::Start);
            }
            rig.step();
        }
        rig.receives = Box::new(|n, from, to| {
            (n + from as u64 * 3 + to as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 0
        });
        if !rig.craft[member].armed {
            continue;
        }
        rig.feed(member, Input::BatteryLow(EndFlight::Return));
        let context = std::format!("{member} after {after_s} s");
        rig.until(&context, 10, |r| r.all_in(StateId::Aborted));
        assert!(
            (0..5)
                .filter(|i| *i != member)
                .all(|i| rig.has_logged(i, "another waited too long or its battery is low"))
        );
        rig.until(&context, 600, Rig::all_down);
        assert!(rig.nearest.0 > 5.0, "{context}: {:?}", rig.nearest);
    }
}

/// One that the operator held has left its swarm, which flies on without it.
#[test]
fn muscop_34_the_battery_of_one_that_has_left_is_its_own() {
    let mut rig = Rig::new(3, Layout::Linear, 3);
    rig.set_up();
    rig.command_all(Command::Start);
    rig.feed(1, Input::Operator(Command::Hold));
    (0..100).for_each(|_| rig.step());
    rig.feed(1, Input::BatteryLow(EndFlight::Return));
    rig.until("all down", 900, Rig::all_down);
    assert!(!rig.has_logged(0, "another waited too long or its battery is low"));
    assert_eq!(
        (rig.craft[0].muscop.state_id(), rig.craft[1].muscop.state_id()),
        (StateId::Finished, StateId::Aborted)
    );
}

/// Its exclusion of a dead member, which never answers, is broadcast for ever.
#[test]
fn muscop_34_a_leader_that_has_excluded_a_dead_member_recalls_all() {
    let mut rig = Rig::new(4, Layout::Linear, 3);
    rig.set_up();
    rig.command_all(Command::Start);
    let leader = (0..4).find(|&i| rig.craft[i].muscop.swarm.is_leader()).unwrap();
    let dead = (leader + 1) % 4;
    rig.receives = Box::new(move |_, from, to| from != dead && to != dead);
    let member = rig.craft[dead].muscop.swarm.config().me;
    rig.feed(leader, Input::Operator(Command::Exclude { member }));
    (0..20).for_each(|_| rig.step());
    rig.feed(leader, Input::BatteryLow(EndFlight::Return));
    (0..60).for_each(|_| rig.step());
    for i in (0..4).filter(|i| *i != dead) {
        assert_eq!(rig.craft[i].muscop.state_id(), StateId::Aborted, "{i}: {:?}", rig.craft[i].log);
    }
}
