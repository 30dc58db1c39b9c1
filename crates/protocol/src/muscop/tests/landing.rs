//! Commands that are withdrawn, landings of swarms that are not whole, and waits that end.

use rand_core::Rng as _;

use super::faults::{along_the_row, straight_on};
use super::*;

/// How far an aircraft is in flight: the last waypoint that it has reached, and whether it has left it.
pub(super) fn progress_of(rig: &Rig, i: usize) -> (Option<u16>, bool) {
    let muscop = &rig.craft[i].muscop;
    (muscop.reached(), muscop.state_id() == StateId::MovingToWaypoint)
}

/// Whether `i` and the one that it follows both wait for `j`.
fn in_group(rig: &Rig, i: usize, j: usize) -> bool {
    let id = |i: usize| rig.craft[i].muscop.swarm.config().me;
    let waits =
        |i: usize| !rig.craft[i].muscop.swarm.absentees().iter().any(|a| a.id == id(j) && !a.is_waited_for);
    let leader = rig.craft[i].muscop.view().swarm.leader_id;
    let leader = (0..rig.craft.len()).find(|&l| Some(id(l)) == leader).unwrap_or(i);
    waits(i) && (leader == j || waits(leader))
}

#[test]
fn muscop_25_no_aircraft_leaves_before_one_that_was_lost_and_is_received_again() {
    for seed in 0..24u64 {
        let mut rng = rand_pcg::Pcg64Mcg::new(u128::from(seed) + 1);
        let mut rig = Rig::new(5, Layout::Linear, seed);
        along_the_row(&mut rig);
        rig.set_up();
        rig.command_all(Command::Start);
        let begun = rig.now;
        let mut changes_at = rig.now;
        let mut left = 0;
        while !rig.all_down() {
            assert!(rig.now.since(begun) < Duration::from_secs(1_200), "seed {seed}: {:?}", rig.details());
            if rig.now >= changes_at {
                // Every link fails independently, for a time that may be longer than the time to live.
                let links = rng.next_u64() & rng.next_u64();
                rig.receives = Box::new(move |_, from, to| links >> (from * 5 + to) & 1 == 0);
                changes_at = rig.now + Duration::from_millis(2_000 + rng.next_u64() % 6_000);
            }
            let before: StdVec<_> = (0..5).map(|i| progress_of(&rig, i)).collect();
            let groups: StdVec<_> = (0..25).map(|pair| in_group(&rig, pair / 5, pair % 5)).collect();
            rig.step();
            for i in 0..5 {
                let (reached, moves) = progress_of(&rig, i);
                if !moves || before[i].1 {
                    continue;
                }
                left += 1;
                for j in (0..5).filter(|&j| j != i && groups[i * 5 + j] && in_group(&rig, i, j)) {
                    let other = rig.craft[j].muscop.reached();
                    assert!(
                        other >= reached || rig.craft[j].muscop.state_id() == StateId::Aborted,
                        "seed {seed}: {i} leaves {reached:?}, {j} has reached {other:?}: {:?}",
                        rig.details()
                    );
                }
            }
        }
        assert!(left > 0, "seed {seed}");
        assert!(rig.nearest.0 > 5.0, "seed {seed}: {:?}", rig.nearest);
    }
}

#[test]
fn muscop_23_halves_that_land_together_descend_from_their_own_slots() {
    for group in 1..31u64 {
        let mut rig = Rig::new(5, Layout::Linear, 7);
        straight_on(&mut rig);
        rig.set_up();
        rig.command_all(Command::Start);
        rig.until("last leg", 120, |r| (0..5).all(|i| progress_of(r, i) == (Some(2), true)));
        rig.receives = Box::new(move |_, from, to| group >> from & 1 == group >> to & 1);
        rig.until("all down", 400, Rig::all_down);
        assert!(rig.all_in(StateId::Finished), "{group:05b}: {:?}", rig.details());
        // 50 m are between the slots, 10 m between landing positions.
        for (a, b) in (0..5).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let apart_m = rig.craft[a].at.distance(rig.craft[b].at);
            assert!(apart_m > 45.0, "{group:05b}: {a} and {b} land {apart_m:.1} m apart");
        }
        let not_whole = |i: usize| rig.has_logged(i, "may be on the path to the landing position");
        assert_eq!((0..5).filter(|&i| not_whole(i)).count(), 3, "all but the two that lead: {group:05b}");
        assert!(rig.nearest.0 > 8.0, "{group:05b}: {:?}", rig.nearest);
    }
}

#[test]
fn muscop_23_a_swarm_that_is_whole_draws_together() {
    let mut rig = Rig::new(5, Layout::Matrix, 7);
    rig.set_up();
    rig.command_all(Command::Start);
    rig.until("all down", 400, Rig::all_down);
    assert!(rig.all_in(StateId::Finished), "{:?}", rig.details());
    let center = rig.leader();
    for i in (0..5).filter(|&i| i != center) {
        let apart_m = rig.craft[i].at.distance(rig.craft[center].at);
        assert!((9.0..16.0).contains(&apart_m), "{i}: {apart_m:.1} m from the centre");
    }
}

#[test]
fn muscop_24_no_aircraft_flies_into_one_that_stops_on_its_path_to_land() {
    // In a row, the outer fly behind the inner.
    for stops in [0, 1, 3, 4] {
        for after_s in 0..6 {
            let mut rig = Rig::new(5, Layout::Linear, 2);
            rig.set_up();
            rig.command_all(Command::Start);
            rig.until("landing", 200, |r| {
                let states = r.craft.iter().map(|c| c.muscop.state_id());
                states.filter(|s| *s == StateId::MovingToLand || *s == StateId::Landing).count() == 5
            });
            for _ in 0..after_s * 20 {
                rig.step();
            }
            rig.dead[stops] = true;
            rig.craft[stops].order = None;
            rig.until("the others down", 400, Rig::all_down);
            assert!(rig.nearest.0 > 5.0, "{stops} after {after_s} s: {:?}", rig.nearest);
            for i in (0..5).filter(|&i| i != stops) {
                assert_eq!(
                    rig.craft[i].muscop.state_id(),
                    StateId::Finished,
                    "{stops} after {after_s} s: {:?}",
                    rig.details()
                );
            }
        }
    }
}

#[test]
fn muscop_26_one_that_waits_for_the_missing_lands_after_a_bounded_time() {
    // One is lost in its slot, and no operator presses Start; or before it takes off, and the master, on the ground,
    // waits for it for ever.
    for (lost, after_s) in [(0, 0), (1, 0), (3, 0), (0, 12), (2, 25), (4, 60)] {
        let mut rig = Rig::new(5, Layout::Linear, 4);
        straight_on(&mut rig);
        rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 5);
        rig.command_all(Command::Setup);
        rig.until("setup", 60, |r| r.craft.iter().all(|c| c.muscop.state_id() != StateId::Setup));
        for _ in 0..after_s * 20 {
            rig.step();
        }
        rig.dead[lost] = true;
        let flew = |r: &Rig| r.craft.iter().filter(|c| c.armed).count();
        let context = std::format!("{lost} lost after {after_s} s");
        for _ in 0..20 * 60 {
            rig.step();
        }
        let flying = flew(&rig);
        rig.until(&context, 480, Rig::all_down);
        assert!(rig.nearest.0 > 5.0, "{context}: {:?}", rig.nearest);
        let landing =
            (0..5).filter(|&i| rig.has_logged(i, "no operator decided in time: lands here")).count();
        assert!(landing >= flying.saturating_sub(1), "{context}: {landing} of {flying}");
    }
}

#[test]
fn muscop_26_a_swarm_that_is_whole_waits_for_its_start() {
    let mut rig = Rig::new(3, Layout::Linear, 4);
    rig.set_up();
    for _ in 0..20 * 600 {
        rig.step();
    }
    assert!(rig.all_in(StateId::SetupFinished), "{:?}", rig.details());
}

#[test]
fn muscop_27_one_after_the_other_each_waits_until_those_before_it_are_down() {
    for (layout, lost) in
        [Layout::Linear, Layout::Matrix, Layout::Circular].into_iter().zip([None, Some(1), Some(4)])
    {
        let mut rig = Rig::new(5, layout, 3);
        rig.configure_all(|c| c.landing = Manner::Sequential);
        straight_on(&mut rig);
        rig.set_up();
        rig.command_all(Command::Start);
        // Half of all datagrams are lost, and one aircraft with its companion while it waits for those before it.
        rig.receives = Box::new(|n, from, to| scramble(n, from, to) & 1 == 0);
        rig.until("landing", 400, |r| r.craft.iter().any(|c| c.muscop.state_id() == StateId::Landing));
        let center = rig.leader();
        let lost = lost.map(|n| (center + n) % 5).filter(|&n| n != center);
        let begun = rig.now;
        let mut order = std::vec![center];
        while !rig.all_down() {
            assert!(rig.now.since(begun) < Duration::from_secs(600), "{layout:?}: {:?}", rig.details());
            if let Some(lost) = lost.filter(|_| rig.now.since(begun) > Duration::from_secs(3)) {
                rig.dead[lost] = true;
            }
            rig.step();
            for i in 0..5 {
                let leaves =
                    matches!(rig.craft[i].muscop.state_id(), StateId::MovingToLand | StateId::Landing);
                if leaves && !order.contains(&i) {
                    if lost.is_none() {
                        let up: StdVec<_> = order.iter().filter(|&&o| rig.craft[o].armed).collect();
                        assert!(up.is_empty(), "{layout:?}: {i} leaves, {up:?} are up: {:?}", rig.details());
                    }
                    order.push(i);
                }
            }
        }
        let others = (0..5).filter(|&i| Some(i) != lost);
        for i in others {
            assert_eq!(rig.craft[i].muscop.state_id(), StateId::Finished, "{layout:?}: {:?}", rig.details());
        }
        assert!(rig.nearest.0 > 8.0, "{layout:?}: {:?}", rig.nearest);
    }
}

/// Two are ordered to land, one after the other, and the second hangs above the first: it flies aside and lands there. *Land*
/// again, after the operator can have seen that, lands it where it is.
#[test]
fn muscop_30_one_that_is_ordered_to_land_does_not_land_on_one_that_stands_below() {
    for insists in [false, true] {
        let mut rig = Rig::new(3, Layout::Linear, 3);
        rig.set_up();
        rig.feed(1, Input::Operator(Command::Land));
        rig.until("down", 120, |r| !r.craft[1].armed);
        let below = rig.craft[1].at;
        rig.craft[2].at = DVec3::new(below.x + 1.0, below.y, 15.0);
        rig.step();
        rig.nearest.0 = f64::INFINITY;
        rig.feed(2, Input::Operator(Command::Land));
        assert!(matches!(rig.craft[2].order, Some(Order::FlyTo(_))), "{:?}", rig.craft[2].order);
        assert!(rig.craft[2].muscop.detail().contains("another aircraft is below"));
        if insists {
            rig.feed(2, Input::Operator(Command::Land));
            assert!(matches!(rig.craft[2].order, Some(Order::FlyTo(_))), "{:?}", rig.craft[2].order);
            // Against a wind that it cannot beat.
            let held = rig.craft[2].at;
            for _ in 0..61 {
                rig.craft[2].at = held;
                rig.step();
            }
            rig.feed(2, Input::Operator(Command::Land));
            assert_eq!(rig.craft[2].order, Some(Order::Land));
            continue;
        }
        rig.until("landed aside", 120, |r| !r.craft[2].armed);
        assert!(rig.craft[2].at.distance(below) > 6.0, "{}", rig.craft[2].at);
        assert!(rig.nearest.0 > 5.0, "{:?}", rig.nearest);
    }
}
