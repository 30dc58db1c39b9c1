//! The ground is lost in flight, at any time, and no flight changes: `docs/decisions/0006-ground-loss.md`.

use crate::common::row;

use wingbeat_agent::Phase;
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{Duration, Instant};
use wingbeat_sim::flight_controller::Parameter;
use wingbeat_sim::motion::Profile;
use wingbeat_sim::world::World;

use self::row::Row;

const AIRCRAFT: usize = 3;
/// Trials of each profile: ten flights, each with the ground lost at ten times.
const FLIGHTS: u64 = 10;
const LOSSES: u64 = 10;

/// Every mode that each aircraft flies in, from the take-off to the ground, of a flight whose consoles are lost then.
fn modes(profile: Profile, seed: u64, lost_at: Instant) -> ([Vec<Mode>; AIRCRAFT], Instant) {
    // RTL when the ground station has been silent for 5 s.
    let parameters = [(Parameter::FS_GCS_ENABLE, 1.0)];
    let row = Row { profile, seed, parameters: &parameters, distance_m: 30.0, ..Row::default() };
    let mut world = row.world();
    (0..AIRCRAFT).for_each(|i| world.lease(i, true));
    let mut modes: [Vec<Mode>; AIRCRAFT] = Default::default();
    let mut is_lost = false;
    let is_over = |world: &mut World| {
        if !is_lost && world.now() >= lost_at {
            is_lost = true;
            (0..AIRCRAFT).for_each(|i| world.lease(i, false));
        }
        for (i, modes) in modes.iter_mut().enumerate() {
            let mode = world.truth(i).mode;
            if modes.last() != Some(&mode) {
                modes.push(mode);
            }
        }
        (0..AIRCRAFT).all(|i| world.phase(i) == Phase::Finished)
    };
    row::operate(&mut world, AIRCRAFT, is_over);
    (modes, world.now())
}

#[test]
fn the_ground_lost_at_any_time_changes_no_mode_in_200_trials() {
    let (mut trials, mut changed) = (0, Vec::new());
    for profile in [Profile::Copter357, Profile::Copter462] {
        for seed in 0..FLIGHTS {
            let (undisturbed, over) = modes(profile, seed, Instant::NEVER);
            assert!(undisturbed.iter().all(|modes| modes.contains(&Mode::Guided)), "{undisturbed:?}");
            for loss in 0..LOSSES {
                // From the first climb to the last landing.
                let share = (2 * loss + 1) as f64 / (2 * LOSSES) as f64;
                let lost_at = Instant::ZERO + Duration::from_millis((over.as_millis() as f64 * share) as u64);
                trials += 1;
                let (modes, _) = modes(profile, seed, lost_at);
                if modes != undisturbed {
                    changed.push(format!("{profile:?}, seed {seed}, lost at {lost_at:?}: {modes:?}"));
                }
            }
        }
    }
    println!("{trials} trials, {} with another sequence of modes", changed.len());
    assert_eq!((trials, changed), (200, vec![]));
}
