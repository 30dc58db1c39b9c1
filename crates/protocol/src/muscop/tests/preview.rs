//! The formation as people see it, and why a plan cannot be flown, before the operator presses *Setup*.

use super::*;

fn met(count: usize, layout: Layout, change: impl Fn(&mut swarm::Config)) -> Rig {
    let mut rig = Rig::new(count, layout, 3);
    rig.configure_all(change);
    rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == count);
    rig
}

fn steps(rig: &mut Rig, seconds: usize) {
    for _ in 0..20 * seconds {
        rig.step();
    }
}

#[test]
fn muscop_28_the_slots_before_setup_are_those_that_setup_plans() {
    for layout in [Layout::Linear, Layout::Matrix, Layout::CompactMesh, Layout::Wedge] {
        let mut rig = met(7, layout, |_| {});
        steps(&mut rig, 2);
        let before = rig.craft[0].muscop.details().formation.unwrap();
        assert_eq!((before.is_planned, before.slots.len(), before.refused), (false, 7, None));
        assert!(before.heading_rad.unwrap().sin().abs() < 1e-4, "the first leg leads north");
        assert!(rig.craft[1..].iter().all(|c| c.muscop.details().formation.is_none()), "the master's alone");
        rig.set_up();
        let after = rig.craft[0].muscop.details().formation.unwrap();
        assert!(after.is_planned);
        assert_eq!(after.slots, before.slots, "{layout}");
        // All hover where they were drawn.
        for slot in &after.slots {
            let craft = rig.craft.iter().find(|c| c.muscop.swarm.config().me == slot.id).unwrap();
            let away = local_m(craft, slot.position) - craft.at;
            assert!(away.length() < 1.5, "{layout}: {} is {away} from its place", slot.id);
        }
        rig.command_all(Command::Start);
        rig.until("the second waypoint", 120, |r| r.craft[0].muscop.reached() == Some(1));
        let there = rig.craft[0].muscop.details().formation.unwrap();
        assert!(there.slots[0].position.latitude_e7 > after.slots[0].position.latitude_e7 + 15_000);
        rig.until("all down", 300, Rig::all_down);
        assert_eq!(rig.craft[0].muscop.details().formation, None, "over");
    }
}

fn local_m(craft: &Craft, place: Point) -> DVec3 {
    let Point { latitude_e7, longitude_e7, height_mm } = place;
    let flat = craft.frame.to_local(Position { latitude_e7, longitude_e7, altitude_mm: 0 });
    DVec3::new(flat.x, flat.y, f64::from(height_mm) / 1e3)
}

#[test]
fn muscop_28_what_cannot_be_planned_is_known_before_setup_and_over_when_mended() {
    let mut rig = met(3, Layout::Linear, |c| c.distance_most_m = 205.0);
    steps(&mut rig, 2);
    let setup = |rig: &Rig| rig.craft[0].muscop.permits(Command::Setup);
    let refused = setup(&rig).unwrap_err().to_string();
    assert!(refused.contains("slot 0, waypoint 1: 206 m from the start"), "{refused}");
    let view = rig.craft[0].muscop.details().formation.unwrap();
    assert_eq!(
        (view.refused.map(|why| why.to_string()), view.slots.len()),
        (Some(refused), 3),
        "drawn all the same"
    );
    let near = mission(&[(0.0, 0.0), (0.0, 100.0)], 20.0);
    rig.craft[0].muscop.set_mission(&near, MissionExtras::NONE).unwrap();
    steps(&mut rig, 2);
    assert_eq!(setup(&rig), Ok(()));
    // One is carried too near to another, and back.
    rig.craft[1].at.x -= 6.0;
    steps(&mut rig, 2);
    let refused = setup(&rig).unwrap_err().to_string();
    assert!(refused.contains("000000000000000b and 000000000000000a stand 4.0 m apart"), "{refused}");
    rig.craft[1].at.x += 6.0;
    steps(&mut rig, 2);
    rig.set_up();
}

#[test]
fn muscop_28_nothing_is_drawn_before_all_have_called() {
    let mut rig = Rig::new(3, Layout::Linear, 3);
    rig.dead[2] = true;
    steps(&mut rig, 3);
    let view = rig.craft[0].muscop.details().formation.unwrap();
    assert_eq!((view.slots.len(), view.heading_rad, view.distance_m), (0, None, 50.0));
}
