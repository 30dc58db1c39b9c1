use super::super::{Kind, drills, story};
use super::*;

/// Seeds of each kind in a plain `cargo test`; `wingbeat bench drills` flies 500.
const SEEDS: u64 = 6;

#[test]
fn whatever_goes_wrong_behind_a_pilot_nobody_collides_and_everybody_comes_down() {
    for outcome in drills(&Kind::FOLLOWING, 1, SEEDS, 2).unwrap() {
        assert!(outcome.is_good(), "{}", story(&outcome));
        assert!(outcome.separation_min_m > 5.0, "{}", story(&outcome));
    }
}

/// The checkers of this drill are not blind: the first lie is heard by all, and every one is refused.
#[test]
fn strangers_are_heard_and_refused() {
    let outcome = super::super::drill(Kind::FollowStranger, 1).unwrap();
    assert!(outcome.is_good() && outcome.completed == 2 * AIRCRAFT, "{}", story(&outcome));
    let heard: u64 = outcome
        .story
        .iter()
        .find_map(|line| line.strip_suffix(" lies refused")?.parse().ok())
        .expect("the story counts them");
    // Six lies each 700 ms to five aircraft, in a flight of a minute and more.
    assert!(heard > 2_000, "{heard}");
}

/// A slave that brakes because its leader is silent hears it again while its autopilot's last heartbeat still shows
/// the mode before: its next target reaches an aircraft that takes targets all the same.
#[test]
fn a_leader_that_is_heard_again_at_once_is_followed_again() {
    let mut held = 0;
    for n in 0..16 {
        let mut script = Script::draw(Kind::FollowLeaderSilent, 1);
        let lasts = Duration::from_millis(2_100 + n * 150);
        let act = Act::Silence(Role::Master, lasts);
        script.step = Some(script::Step { stage: Stage::Following, delay: Duration::from_secs(20), act });
        script.hover = Duration::from_secs(30);
        if let Task::Follow(task) = &mut script.scenario.task {
            (task.leader_lost, task.follows_again) = (LeaderLost::Hold, true);
            task.refresh = Duration::from_millis(500);
            task.distance_m = 80.0;
        }
        let outcome = fly_script(script, Kind::FollowLeaderSilent, 1).unwrap();
        assert!(outcome.is_good(), "{lasts:?}: {}", story(&outcome));
        held += outcome.log.iter().filter(|l| l.contains("LeaderLost")).count();
        assert_eq!(outcome.completed, AIRCRAFT, "{lasts:?}: {}", story(&outcome));
        assert!(!outcome.log.iter().any(|l| l.contains("no effect")), "{lasts:?}: {}", story(&outcome));
    }
    assert!(held > 20, "{held}: most of these silences were long enough");
}
