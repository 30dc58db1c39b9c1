extern crate std;

use std::{format, string::ToString, vec, vec::Vec};

use proptest::prelude::*;

use super::*;

fn formation(layout: Layout, count: usize, distance_m: f64) -> Formation {
    Formation::new(layout, count, distance_m).unwrap()
}

/// Every layout that needs no list, with every parameter.
fn layouts() -> impl Strategy<Value = Layout> {
    let computed: Vec<Layout> = Layout::ALL.into_iter().filter(|layout| *layout != Layout::Custom).collect();
    (prop::sample::select(computed), any::<u32>()).prop_map(|(layout, number)| {
        let Some(limits) = &layout.shape().parameter else { return layout };
        let span = u64::from(limits.most - limits.least) + 1;
        let parameter = u64::from(limits.least) + u64::from(number) % span;
        format!("{}:{parameter}", layout.name()).parse().unwrap()
    })
}

/// Two that are too near.
fn too_near(formation: &Formation, heading_rad: f64) -> Option<(usize, usize, f64)> {
    let at: Vec<DVec3> = formation.offsets_m(heading_rad).unwrap().iter().copied().collect();
    for second in 0..at.len() {
        for first in 0..second {
            let apart = at[first].truncate().distance(at[second].truncate());
            if apart < formation.distance_m() * ROUNDING {
                return Some((first, second, apart));
            }
        }
    }
    None
}

fn mean_distance_m(layout: Layout, count: usize) -> f64 {
    let f = formation(layout, count, 1.0);
    (0..count).map(|slot| f.offset_m(slot, 0.0).length()).sum::<f64>() / count as f64
}

proptest! {
    #[test]
    fn no_two_slots_are_nearer_than_asked_and_the_leader_is_where_it_should_be(
        layout in layouts(), count in 1..=AIRCRAFT_MAX, distance_m in 1.0..500.0f64, heading in -10.0..10.0f64,
    ) {
        let f = formation(layout, count, distance_m);
        prop_assert_eq!(f.count(), count);
        prop_assert_eq!(too_near(&f, heading), None);
        prop_assert!(f.center_slot() < count);
        prop_assert!(f.offset_m(f.center_slot(), heading).length() < 1e-9);
        prop_assert_eq!(&f, &formation(layout, count, distance_m));
        // Drawn together for the landing it keeps the distance of the landing.
        let landing = f.with_distance_m(10.0).unwrap();
        prop_assert_eq!(landing.count(), count);
        prop_assert_eq!(too_near(&landing, heading), None);
        prop_assert!(landing.offset_m(landing.center_slot(), heading).length() < 1e-9);
    }

    #[test]
    fn rotating_a_formation_changes_no_distance(
        layout in layouts(), count in 2..=AIRCRAFT_MAX, heading in -10.0..10.0f64, slot in 0..AIRCRAFT_MAX,
    ) {
        let f = formation(layout, count, 20.0);
        let slot = slot % count;
        let (ahead, rotated) = (f.offset_m(slot, 0.0), f.offset_m(slot, heading));
        prop_assert!((ahead.length() - rotated.length()).abs() < 1e-6);
        // Clockwise: what lay ahead lies in the direction of the heading.
        let (sin, cos) = libm::sincos(heading);
        prop_assert!((rotated.dot(DVec2::new(sin, cos)) - ahead.y).abs() < 1e-6);
    }

    #[test]
    fn a_list_in_decimetres_is_the_same_formation(
        seed in any::<u32>(), count in 1..=AIRCRAFT_MAX, distance_m in 1.0..500.0f64,
    ) {
        let layout = Layout::Random { seed };
        let f = formation(layout, count, distance_m);
        let listed = Formation::listed(layout, &f.offsets(), count, distance_m).unwrap();
        prop_assert_eq!(listed, f);
    }

    #[test]
    fn a_list_keeps_the_distance_or_is_refused_with_the_two_that_do_not(
        slots in prop::collection::vec((-500..500i32, -500..500i32, -100..100i32), 1..20), distance_m in 1.0..30.0f64,
    ) {
        let offsets: Vec<Offset> =
            slots.iter().map(|&(right_dm, ahead_dm, up_dm)| Offset { right_dm, ahead_dm, up_dm }).collect();
        match Formation::custom(&offsets, offsets.len(), distance_m) {
            Ok(f) => {
                prop_assert_eq!(too_near(&f, 1.0), None);
                for (slot, offset) in offsets.iter().enumerate() {
                    let apart = offset.meters() - offsets[0].meters();
                    prop_assert!((f.height_m(slot) - apart.z).abs() < 1e-9);
                    prop_assert!(f.offset_m(slot, 0.0).distance(apart.truncate()) < 1e-9);
                }
            }
            Err(FormationError::Near { first, second, found_m, least_m }) => {
                let apart = (offsets[first].meters() - offsets[second].meters()).truncate().length();
                prop_assert!((apart - found_m).abs() < 1e-9 && found_m < least_m && least_m == distance_m);
                prop_assert!(first < second);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_file_of_anything_is_read_or_refused(text in "[-+0-9., #\n\ta\u{e9}]{0,200}") {
        if let Ok(offsets) = read_offsets(&text) {
            let written: Vec<std::string::String> = offsets.iter().map(ToString::to_string).collect();
            prop_assert_eq!(read_offsets(&written.join("\n")), Ok(offsets));
        }
    }
}

#[test]
fn matrix_of_nine_is_centred_on_slot_four() {
    let f = formation(Layout::Matrix, 9, 50.0);
    assert_eq!(f.center_slot(), 4);
    assert_eq!(f.offset_m(0, 0.0), DVec2::new(-50.0, -50.0));
    assert_eq!(f.offset_m(8, 0.0), DVec2::new(50.0, 50.0));
}

#[test]
fn heading_east_turns_ahead_into_east() {
    let f = formation(Layout::Matrix, 9, 50.0);
    let ahead = f.offset_m(7, core::f64::consts::FRAC_PI_2); // middle of the front row
    assert!(ahead.distance(DVec2::new(50.0, 0.0)) < 1e-9, "{ahead}");
}

/// The order of the sides is the reference's: left, right, ahead, behind; then the corners.
#[test]
fn a_compact_matrix_grows_around_its_middle() {
    let f = formation(Layout::CompactMatrix, 14, 1.0);
    let cells: Vec<(i32, i32)> =
        (0..14).map(|slot| f.offset_m(slot, 0.0)).map(|o| (o.x as i32, o.y as i32)).collect();
    let expected = vec![
        (0, 0),
        (-1, 0),
        (1, 0),
        (0, 1),
        (0, -1),
        (-1, 1),
        (1, 1),
        (-1, -1),
        (1, -1),
        (-2, 0),
        (2, 0),
        (0, 2),
        (0, -2),
        (-2, -1),
    ];
    assert_eq!(cells, expected);
}

#[test]
fn a_compact_mesh_of_seven_is_a_hexagon_around_its_middle() {
    let f = formation(Layout::CompactMesh, 7, 10.0);
    for slot in 1..7 {
        assert!((f.offset_m(slot, 0.0).length() - 10.0).abs() < 1e-9);
        let neighbours =
            (1..7).filter(|&o| (f.offset_m(o, 0.0).distance(f.offset_m(slot, 0.0)) - 10.0).abs() < 1e-9);
        assert_eq!(neighbours.count(), 2);
    }
    let area = |from: f64| f.offset_m(1, from).y > 0.0;
    assert!(!area(0.0) || f.offset_m(1, 0.0).x < 0.0, "the first side is up on the left");
}

/// "the mean distance between UAVs and the center multicopter is even less" (thesis section 4.1.6.1).
#[test]
fn compact_is_nearer_to_the_middle_than_the_matrix_and_the_mesh_nearer_still() {
    for count in [9, 16, 25, 49, 81, 100, 128] {
        let [matrix, compact, mesh] = [Layout::Matrix, Layout::CompactMatrix, Layout::CompactMesh]
            .map(|layout| mean_distance_m(layout, count));
        assert!(compact <= matrix + 1e-9, "{count}: {compact} {matrix}");
        assert!(mesh < compact, "{count}: {mesh} {compact}");
    }
}

/// All cells that are nearer than a slot are slots: no ring is missing.
#[test]
fn compact_layouts_leave_no_nearer_cell_free() {
    for count in 1..=AIRCRAFT_MAX {
        for (layout, row_step, half) in
            [(Layout::CompactMatrix, 1.0, 0.0), (Layout::CompactMesh, libm::sqrt(0.75), 0.5)]
        {
            let f = formation(layout, count, 1.0);
            let farthest = (0..count).map(|slot| f.offset_m(slot, 0.0).length()).fold(0.0, f64::max);
            let mut nearer = 0;
            for row in -30..=30 {
                for column in -30..=30 {
                    let (row, column) = (f64::from(row), f64::from(column));
                    let at = DVec2::new(column + half * row, row_step * row);
                    nearer += usize::from(at.length() < farthest - 1e-9);
                }
            }
            assert!(
                nearer < count.max(2),
                "{layout} of {count}: {nearer} cells are nearer than the farthest"
            );
        }
    }
}

#[test]
fn a_wedge_points_ahead() {
    let f = formation(Layout::Wedge, 5, 10.0);
    let at: Vec<DVec2> = (0..5).map(|slot| f.offset_m(slot, 0.0)).collect();
    assert!(at[1].x < 0.0 && at[2].x > 0.0 && at[1].y < 0.0 && at[3].y < at[1].y, "{at:?}");
    assert!((at[3].distance(at[1]) - 10.0).abs() < 1e-9);
}

#[test]
fn a_swarm_that_splits_up_has_a_slot_for_every_aircraft() {
    // 3 parts of 10 aircraft in the reference: 3 each, and the tenth next to the middle has no slot.
    for count in [2, 3, 8, 11, 12] {
        let f = formation(Layout::SplitUp { parts: 3 }, count, 50.0);
        for slot in 1..count {
            assert!(f.offset_m(slot, 0.0).length() >= 600.0 - 1e-9);
        }
    }
    // Wide apart, neighbouring rows begin farther out.
    assert_eq!(too_near(&formation(Layout::SplitUp { parts: 8 }, 128, 2_000.0), 0.0), None);
}

#[test]
fn refuses_what_cannot_be_flown() {
    assert_eq!(Formation::new(Layout::Linear, 0, 50.0), Err(FormationError::Count(0)));
    assert_eq!(Formation::new(Layout::Linear, 129, 50.0), Err(FormationError::Count(129)));
    assert!(Formation::new(Layout::Linear, 9, f64::NAN).is_err());
    assert!(Formation::new(Layout::Linear, 9, -1.0).is_err());
    assert_eq!(Formation::new(Layout::Custom, 9, 50.0), Err(FormationError::NoSlots));
    assert_eq!(
        Formation::new(Layout::SplitUp { parts: 1 }, 9, 50.0),
        Err(FormationError::Parameter { layout: "split-up", name: "parts", found: 1, least: 2, most: 8 })
    );
    let f = formation(Layout::Linear, 3, 50.0);
    assert!(matches!(f.offsets_m(f64::NAN), Err(FormationError::Heading(_))));
    assert!(matches!(f.offsets_m(f64::INFINITY), Err(FormationError::Heading(_))));
}

#[test]
fn lists_are_refused_with_the_slots_that_are_wrong() {
    let slot = |right_dm, ahead_dm, up_dm| Offset { right_dm, ahead_dm, up_dm };
    let list = [slot(0, 0, 0), slot(100, 0, 0), slot(100, 0, 300)];
    assert_eq!(Formation::custom(&list[..2], 2, 10.0).unwrap().count(), 2);
    let over = Formation::custom(&list, 3, 10.0).unwrap_err();
    assert_eq!(over.to_string(), "slots 1 and 2 are 0.0 m apart over the ground, expected at least 10 m");
    assert_eq!(Formation::custom(&list, 4, 10.0), Err(FormationError::TooFewSlots { aircraft: 4, slots: 3 }));
    assert_eq!(Formation::custom(&[], 1, 10.0), Err(FormationError::NoSlots));
    let far = [slot(0, 0, 0), slot(i32::MIN, 0, 0)];
    assert!(matches!(Formation::custom(&far, 2, 10.0), Err(FormationError::Far { slot: 1, .. })));
    // More slots than aircraft: the first ones are flown.
    assert_eq!(Formation::custom(&list, 2, 10.0).unwrap().count(), 2);
}

#[test]
fn names_are_read_as_they_are_written() {
    for layout in Layout::ALL {
        assert_eq!(layout.to_string().parse(), Ok(layout));
        assert_eq!(layout.name().parse(), Ok(layout));
    }
    assert_eq!("split-up:5".parse(), Ok(Layout::SplitUp { parts: 5 }));
    assert_eq!("random:77".parse(), Ok(Layout::Random { seed: 77 }));
    for wrong in ["", "vee", "Linear", "linear:2", "random:", "random:-1", "split-up:x", "custom:1"] {
        assert_eq!(wrong.parse::<Layout>(), Err(FormationError::UnknownLayout), "{wrong}");
    }
    assert_eq!(
        "split-up:9".parse::<Layout>(),
        Err(FormationError::Parameter { layout: "split-up", name: "parts", found: 9, least: 2, most: 8 })
    );
    let message = FormationError::UnknownLayout.to_string();
    assert!(message.starts_with("a formation is one of linear, matrix, circular, "), "{message}");
    for name in Layout::ALL.map(Layout::name).into_iter().chain(["random:SEED", "split-up:PARTS (2 to 8)"]) {
        assert!(message.contains(name), "{message}");
    }
}

/// Aircraft with an older version read these numbers. A new formation takes one that was never used.
#[test]
fn numbers_in_a_plan_stay() {
    let numbers = [
        ("linear", 0),
        ("matrix", 1),
        ("circular", 2),
        ("compact-matrix", 3),
        ("compact-mesh", 4),
        ("wedge", 5),
        ("random:0", 6),
        ("custom", 7),
        ("split-up:2", 18),
        ("split-up:8", 24),
    ];
    for (name, number) in numbers {
        let layout: Layout = name.parse().unwrap();
        assert_eq!((layout.number(), Layout::from_number(number)), (number, Some(layout)), "{name}");
    }
    for number in [9, 15, 16, 17, 25, u8::MAX] {
        assert_eq!(Layout::from_number(number), None, "{number}");
    }
}

#[test]
fn files_are_read_and_their_mistakes_named() {
    let text = "# a diamond\n0, 0\n-12.5, -10 # left\n\n 12.5 ,-10.0,+3.0\r\n0,-20.00, -0.5\n";
    let offsets = read_offsets(text).unwrap();
    let expected = [(0, 0, 0), (-125, -100, 0), (125, -100, 30), (0, -200, -5)]
        .map(|(right_dm, ahead_dm, up_dm)| Offset { right_dm, ahead_dm, up_dm });
    assert_eq!(offsets.as_slice(), &expected);
    for (text, words) in [
        ("", "found no slot"),
        ("# nothing\n\n", "found no slot"),
        ("0,0\n1", "line 2: found \"1\", expected two or three numbers"),
        ("0,0\n1,2,3,4", "line 2: found \"1,2,3,4\", expected two or three numbers"),
        ("0,0\n\n1,x", "line 3: found \"x\", expected a number of metres"),
        ("0,nan", "line 1: found \"nan\", expected a number of metres"),
        ("0,1e3", "found \"1e3\""),
        ("0,1.25", "line 1: found \"1.25\", expected a number of metres with at most one decimal"),
        ("0,", "line 1: found \"\""),
        ("0,.5", "found \".5\""),
        ("100000.1,0", "found \"100000.1\", expected at most 100000 m"),
        ("0,99999999999999999999999", "expected at most 100000 m"),
    ] {
        let message = read_offsets(text).unwrap_err().to_string();
        assert!(message.contains(words), "{text:?}: {message}");
    }
    let many = "0,0\n".repeat(AIRCRAFT_MAX + 1);
    assert_eq!(
        read_offsets(&many).unwrap_err().to_string(),
        format!("line {}: found slot number 129, expected at most 128", AIRCRAFT_MAX + 1)
    );
}

#[test]
fn the_manual_describes_every_formation() {
    let manual = include_str!("../../../../docs/protocols/muscop.md");
    for layout in Layout::ALL {
        let row = manual.lines().find(|line| line.starts_with(&format!("| `{}", layout.name())));
        assert!(row.is_some(), "{layout}: docs/protocols/muscop.md, section Formations, has no row of it");
    }
}
