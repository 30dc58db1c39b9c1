//! Peers that stand elsewhere than where the other gave way to them.

use super::driver::{Driver, ELSEWHERE, HERE, THROUGH_US, beacon};
use super::*;

/// It moved aside for a third after this aircraft gave way, and its mission leads past from there.
#[test]
fn mbcap_05_one_that_gave_way_moves_again_where_the_peer_stands_at_another_position() {
    for (peers, moves) in [(THROUGH_US, true), (&[(-250.0, 9.0), (-350.0, 9.0)][..], false)] {
        let mut driver = Driver::new(1, 2);
        driver.go_on_please();
        driver.orders.clear();
        for _ in 0..8 {
            driver.mutual(Avoidance::StandStill, peers);
            driver.wait(1);
        }
        let moved = driver.orders.iter().any(|order| matches!(order, Order::FlyTo(_)));
        assert_eq!(moved, moves, "{peers:?}: {:?}", driver.orders);
    }
}

/// A third stopped it on its way past this aircraft, and that conflict is over.
#[test]
fn mbcap_08_one_that_gave_way_waits_for_a_peer_that_a_third_stopped_next_to_it() {
    let resumes = |beacon: Beacon| {
        let mut driver = Driver::new(1, 2);
        driver.go_on_please();
        driver.orders.clear();
        driver.receive(beacon);
        driver.check();
        driver.orders.contains(&Order::Resume)
    };
    let next_to_it = &[(HERE.0 - 3.0, HERE.1 + 8.0), (HERE.0 - 3.0, HERE.1 + 60.0)];
    let solved = |state, at| Beacon { event: 1, ..beacon(state, None, at) };
    assert!(!resumes(solved(Avoidance::Normal, next_to_it)));
    assert!(resumes(solved(Avoidance::Normal, ELSEWHERE)), "it has passed");
    assert!(resumes(solved(Avoidance::StandStill, next_to_it)), "its operator holds it");
    assert!(resumes(Beacon { landing: true, ..solved(Avoidance::Normal, next_to_it) }));
}

/// This aircraft is mute: a third that waits because of it cannot know where it stands.
#[test]
fn mbcap_21_one_that_gave_way_leaves_the_way_of_a_third_that_waits_for_it() {
    let moves_within = |seconds: u32| {
        let mut driver = Driver::new(1, 2);
        driver.go_on_please();
        driver.orders.clear();
        for _ in 0..seconds {
            driver.other = 3;
            driver.receive(beacon(Avoidance::StandStill, Some(1), THROUGH_US));
            driver.other = 2;
            driver.mutual(Avoidance::StandStill, ELSEWHERE);
            driver.wait(1);
        }
        driver.orders.iter().any(|order| matches!(order, Order::FlyTo(_)))
    };
    assert!(!moves_within(25), "its turn has not come");
    assert!(moves_within(35));
}

#[test]
fn mbcap_08_one_does_not_set_out_past_a_peer_that_stands_too_near_to_its_way() {
    for (off_m, waits) in [(4.0, true), (8.0, false)] {
        let mut driver = Driver::new(2, 1);
        driver.stand_still();
        driver.orders.clear();
        let aside = &[(HERE.0 + 30.0, HERE.1 + off_m)];
        for _ in 0..3 {
            driver.mutual(Avoidance::GoOnPlease, aside);
            driver.wait(1);
        }
        assert_eq!(driver.orders.is_empty(), waits, "{off_m} m: {:?}", driver.orders);
        // A peer that stays is passed in the end.
        for _ in 0..15 {
            driver.mutual(Avoidance::GoOnPlease, aside);
            driver.wait(1);
        }
        assert!(driver.orders.contains(&Order::Resume), "{off_m} m");
    }
}

/// Both moved aside, and the peer stopped because of this aircraft.
#[test]
fn mbcap_08_one_that_moves_aside_stops_before_a_peer_that_stands_in_its_way() {
    let (x, y) = HERE;
    for (north_m, stops) in [(-6.0, true), (20.0, false)] {
        let mut driver = Driver::new(1, 2);
        driver.moving_aside();
        driver.orders.clear();
        driver.fly((x, y - 1.0), 2.0);
        driver.receive(beacon(Avoidance::StandStill, Some(1), &[(x, y + north_m)]));
        driver.wait(2);
        assert_eq!(driver.orders.contains(&Order::Hold), stops, "{north_m} m: {:?}", driver.orders);
    }
}
