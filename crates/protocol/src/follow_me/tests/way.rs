//! Followers that hold make way for their leader (FOLLOW-22).

use super::*;

/// Flies the leader over the position of slave 1; returns the least distance between them.
fn nearest_m(rig: &mut Rig) -> f64 {
    let way_m = rig.craft[1].at - rig.craft[0].at;
    rig.leader_m_s = way_m.truncate().normalize().extend(0.0) * 5.0;
    let mut nearest_m = f64::INFINITY;
    for second in 0..25 {
        if second == 4 && rig.state(1) == StateId::Following {
            rig.receives = |_, from, _| from != 0;
        }
        for _ in 0..20 {
            rig.step();
            nearest_m = nearest_m.min(rig.craft[0].at.distance(rig.craft[1].at));
        }
    }
    nearest_m
}

#[test]
fn follow_22_a_follower_that_holds_moves_off_the_path_on_which_its_leader_was_received_last() {
    let mut rig = Rig::new(3, Layout::Linear, USUAL);
    rig.lead();
    let nearest_m = nearest_m(&mut rig);
    assert_eq!(rig.state(1), StateId::LeaderLost);
    assert!(nearest_m > 9.0, "{nearest_m}");
    assert!(rig.has_logged(1, "moving aside") && !rig.has_logged(2, "moving aside"));
}

#[test]
fn follow_22_a_follower_that_holds_for_its_operator_moves_off_the_path_of_the_leader_that_it_receives() {
    let mut rig = Rig::new(3, Layout::Linear, USUAL);
    rig.lead();
    rig.receives = |_, from, _| from != 0;
    rig.until("loss", 5, |r| r.slaves_in(StateId::LeaderLost));
    rig.receives = |_, _, _| true;
    let (at, nearest_m) = (rig.craft[1].at, nearest_m(&mut rig));
    assert!(nearest_m > 9.0, "{nearest_m}");
    assert!(rig.craft[1].at.distance(at) < 20.0, "no further than it has to");
    assert!(rig.craft[1].follow.detail().contains("moved aside"));
}
