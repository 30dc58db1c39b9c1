//! The rules are not blind: each is broken once, by a world in which it does not hold or by a report that is untrue.

use wingbeat_agent::{Command, Phase};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{Duration, Instant, Position};

use super::Rules;
use crate::drills::Kind;
use crate::drills::conditions::Conditions;
use crate::drills::operator::calm_bound;
use crate::drills::progress::{Milestone, Passed, Stage};
use crate::drills::run::{Drill, End};
use crate::drills::script::{Act, Death, Role, Script, Step};
use crate::drills::sky::FIRST;
use crate::scenario::Task;
use crate::scenario::follow::LeaderPilot;

const SECOND: Duration = Duration::from_secs(1);

/// A drill in which nothing goes wrong but what the test does to its script.
fn drill(kind: Kind, change: impl FnOnce(&mut Script)) -> Drill {
    let mut script = Script::draw(kind, 1, Conditions::default());
    script.steps.clear();
    change(&mut script);
    Drill::new(kind, script, 1, Conditions::default()).unwrap()
}

fn step_until(drill: &mut Drill, done: impl Fn(&Drill) -> bool) {
    while !done(drill) {
        drill.step();
        assert!(drill.run.sky.world.now() < Instant::from_secs(600), "{}", drill.run.sky.progress.names());
    }
}

/// The names of the rules that were broken: of safety, of liveness.
fn broken(rules: Rules) -> [Vec<String>; 2] {
    let names = |found: Vec<String>| {
        found.iter().map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    let (safety, liveness) = rules.verdict();
    [names(safety), names(liveness)]
}

#[test]
fn a_swarm_that_is_too_close_leaves_too_early_or_is_elsewhere_breaks_a_rule() {
    // On the ground they stand 10 m apart: nearer than what counts as a collision here once they fly.
    let mut drill = drill(Kind::Loss, |script| script.scenario.collision_distance_m = 12.0);
    step_until(&mut drill, |drill| drill.run.sky.progress.stage(FIRST) == Stage::Mission(1));
    let (run, rules) = (&drill.run, &mut drill.rules);
    let mut claim = |milestone| {
        rules.on_milestone(run, &Passed { vehicle: FIRST, at: run.sky.world.now(), milestone });
    };
    let home = run.sky.script.scenario.home(FIRST, 1);
    let position = Position { latitude_e7: home.latitude_e7 + 10_000, ..home };
    claim(Milestone::Reached { waypoint: 1, position });
    claim(Milestone::Left { waypoint: 2, given_up: vec![] });
    assert_eq!(broken(drill.rules), [vec!["separation", "arrival", "release"], vec![]]);
}

#[test]
fn followers_that_hesitate_or_stray_and_a_flight_without_an_end_break_a_rule() {
    let lost = Act::Kill(Role::Master, Death::Radio);
    let delay = Duration::from_secs(20);
    let step = Step { whose: Role::Master, stage: Stage::Following, delay, act: lost };
    let mut slow = drill(Kind::FollowLeaderKilled, |script| {
        script.steps = vec![step];
        let Task::Follow(task) = &mut script.scenario.task else { panic!("a follow task") };
        // The followers' timeout is 15 s, the rule's below that of the published refresh.
        task.refresh = Duration::from_secs(5);
        task.distance_m = task.distance_least_m();
    });
    let mut published = Script::draw(Kind::FollowLeaderKilled, 1, Conditions::default());
    if let Task::Follow(task) = &mut published.scenario.task {
        task.refresh = Duration::from_millis(500);
    }
    slow.rules = Rules::of(Kind::FollowLeaderKilled, &published);
    step_until(&mut slow, |drill| drill.run.faults.lost_at(FIRST).is_some());
    let lost_at = slow.run.sky.world.now();
    step_until(&mut slow, |drill| drill.run.sky.world.now() > lost_at + Duration::from_secs(10));
    assert_eq!(broken(slow.rules), [vec!["leader lost"], vec![]]);

    // The outermost slots are 1200 m from the leader, where the rule's formation has them within 500; and its pilot flies longer
    // than the operator waits.
    let mut far = drill(Kind::FollowLoss, |script| {
        let Task::Follow(task) = &mut script.scenario.task else { panic!("a follow task") };
        (task.layout, task.distance_m) = (Layout::Linear, 600.0);
        task.pilot = LeaderPilot::Drawn(Duration::from_secs(900));
    });
    far.rules = Rules::of(Kind::FollowLoss, &Script::draw(Kind::FollowLoss, 1, Conditions::default()));
    step_until(&mut far, |drill| drill.run.sky.world.now() > Instant::ZERO + calm_bound(5) + SECOND);
    assert_eq!(broken(far.rules), [vec!["astray"], vec!["unaided"]]);
}

#[test]
fn one_that_lands_on_its_way_home_unasked_breaks_a_rule() {
    let mut drill = drill(Kind::MbcapFaults, |_| {});
    step_until(&mut drill, |drill| drill.run.sky.world.phase(FIRST) == Phase::Moving);
    drill.run.sky.world.command(FIRST, "return", Command::Return);
    step_until(&mut drill, |drill| drill.run.sky.world.agent_of(FIRST).view().is_returning);
    // No button of the drill's operator.
    drill.run.sky.world.command(FIRST, "land", Command::Land);
    step_until(&mut drill, |drill| drill.run.sky.world.truth(FIRST).mode == Mode::Land);
    drill.step();
    assert_eq!(broken(drill.rules), [vec![], vec!["home"]]);
}

#[test]
fn a_swarm_that_does_not_land_complete_or_end_breaks_a_rule() {
    let mut drill = drill(Kind::Loss, |_| {});
    drill.step();
    drill.rules.on_end(&drill.run, End::NotLanded);
    drill.rules.on_end(&drill.run, End::TimeLimit);
    assert_eq!(broken(drill.rules), [vec!["landed", "time"], vec!["completed"]]);
}
