use super::super::{Kind, drills, story};
use super::*;
use wingbeat_autopilot::copter::Mode;

/// Seeds of each kind in a plain `cargo test`; `wingbeat bench drills` flies 500.
const SEEDS: u64 = 6;

#[test]
fn whatever_goes_wrong_behind_a_pilot_nobody_collides_and_everybody_comes_down() {
    for outcome in drills(&Kind::FOLLOWING, 1, SEEDS, 2).unwrap() {
        assert!(outcome.is_good(), "{}", story(&outcome));
        assert!(outcome.separation_min_m > 5.0, "{}", story(&outcome));
    }
}

/// A pilot at the bounds of what he may do, who flies at his own slaves (4.9 m while 70 m were enough at 500 ms).
#[test]
fn a_pilot_who_flies_at_his_slaves_does_not_reach_them() {
    for seed in 475..=485 {
        let outcome = super::super::drill(Kind::FollowStranger, seed).unwrap();
        assert!(outcome.is_good() && outcome.separation_min_m > 5.0, "{}", story(&outcome));
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

/// A slave that brakes because its leader is silent may hear it again while its autopilot's last heartbeat still
/// shows the mode before, and a target is told once: it must reach an aircraft that takes targets.
#[test]
fn a_target_right_after_a_hold_is_flown_to() {
    let mut told = 0;
    for seed in 1..=12 {
        let mut script = Script::draw(Kind::FollowLeaderSilent, seed);
        // Two words are lost, and the third comes as the slaves lose patience.
        let act = Act::Silence(Role::Master, Duration::from_secs(12));
        script.step = Some(script::Step { stage: Stage::Following, delay: Duration::from_secs(10), act });
        (script.reaction, script.hover) = (Duration::from_secs(4), Duration::from_secs(60));
        if let Task::Follow(task) = &mut script.scenario.task {
            (task.leader_lost, task.follows_again) = (LeaderLost::Hold, true);
            task.refresh = Duration::from_secs(5);
        }
        let mut drill = Drill::of(script, seed).unwrap();
        let mut resumed: Vec<(usize, Instant)> = vec![];
        let (mut read, mut lost) = (0, [false; AIRCRAFT]);
        while drill.world.now() < Instant::from_secs(150) {
            drill.step(seed);
            for line in &drill.world.log()[read..] {
                let was_lost = &mut lost[line.vehicle];
                if line.event.text.starts_with("Following") && std::mem::take(was_lost) {
                    resumed.push((line.vehicle, line.at));
                }
                *was_lost |= line.event.text.starts_with("LeaderLost");
            }
            read = drill.world.log().len();
            // A heartbeat is a second away at most, and the word after this one five.
            let now = drill.world.now();
            resumed.retain(|&(i, at)| {
                let is_due = now.since(at) > Duration::from_millis(2_500);
                if is_due && drill.world.agent_of(i).view().state == StateId::Following {
                    let mode = drill.world.truth(i).mode;
                    assert_eq!(mode, Mode::Guided, "seed {seed}, aircraft {}, {now:?}", i + 1);
                    told += 1;
                }
                !is_due
            });
        }
        assert!(drill.safety.is_empty(), "{:?}", drill.safety);
    }
    assert!(told >= 10, "{told}");
}
