//! The rules are not blind: each is broken once, by a world in which it does not hold or by a report that is untrue.

use wingbeat_agent::{Command, Phase};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{Duration, Instant, Position};
use wingbeat_sim::faults::Fault;

use super::known::Known;
use super::{Rule as _, Rules};
use crate::drills::Kind;
use crate::drills::conditions::Conditions;
use crate::drills::operator::calm_bound;
use crate::drills::progress::{Milestone, Passed, Stage};
use crate::drills::run::{Drill, End};
use crate::drills::script::{Act, Death, Role, Script, Step};
use crate::drills::sky::FIRST;
use crate::scenario::follow::LeaderPilot;
use crate::scenario::{OwnMission, OwnTask, Task, Variant, route};

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
        // The followers' timeout is 40 s, the rule's is that of the published refresh.
        task.refresh = Duration::from_secs(5);
        task.distance_m = task.distance_least_m();
    });
    let mut published = Script::draw(Kind::FollowLeaderKilled, 1, Conditions::default());
    if let Task::Follow(task) = &mut published.scenario.task {
        task.refresh = Duration::from_millis(500);
    }
    slow.rules = Rules::of(Kind::FollowLeaderKilled, &published);
    step_until(&mut slow, |drill| drill.run.faults.lost_at(FIRST, 1).is_some());
    let lost_at = slow.run.sky.world.now();
    step_until(&mut slow, |drill| drill.run.sky.world.now() > lost_at + Duration::from_secs(30));
    assert_eq!(broken(slow.rules), [vec!["leader lost"], vec![]]);

    // The outermost slots are 1200 m from the leader, where the rule's formation has them within 500; and its pilot flies longer
    // than the operator waits.
    let mut far = drill(Kind::FollowLoss, |script| {
        let Task::Follow(task) = &mut script.scenario.task else { panic!("a follow task") };
        (task.layout, task.distance_m) = (Layout::Linear, 600.0);
        task.pilot = LeaderPilot::Drawn(Duration::from_secs(900));
        // This pilot does not stop for followers out of sight.
        script.reaction = None;
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

/// SAFE-08, SAFE-09: motors that stop in the air, by no fault of the script, are a crash.
#[test]
fn an_aircraft_that_falls_without_a_fault_of_the_script_breaks_a_rule() {
    let mut drill = drill(Kind::MissionFaults, |_| {});
    step_until(&mut drill, |drill| drill.run.sky.world.phase(FIRST) == Phase::Moving);
    let now = drill.run.sky.world.now();
    drill.run.sky.world.inflict(now, Fault::MotorsFail { vehicle: FIRST });
    step_until(&mut drill, |drill| drill.run.sky.world.motion(FIRST).landed);
    drill.step();
    assert!(drill.run.sky.hardest_m_s > 5.0, "{}", drill.run.sky.hardest_m_s);
    assert_eq!(broken(drill.rules), [vec!["crash"], vec![]]);
}

#[test]
fn an_aircraft_that_flies_with_an_empty_battery_breaks_a_rule() {
    // A monitor that estimates the charge.
    let mut drill = drill(Kind::OwnReserve, |script| script.scenario.parameters.clear());
    step_until(&mut drill, |drill| drill.run.sky.world.phase(FIRST) == Phase::Moving);
    let now = drill.run.sky.world.now();
    drill.run.sky.world.inflict(now, Fault::BatteryAt { vehicle: FIRST, percent: 0.9 });
    step_until(&mut drill, |drill| drill.run.sky.world.motion(FIRST).landed);
    let found = broken(drill.rules)[0].clone();
    assert!(found.contains(&"crash".to_owned()) && found.contains(&"battery".to_owned()), "{found:?}");
}

#[test]
fn an_aircraft_that_stays_in_the_downwash_of_another_breaks_a_rule() {
    let mut drill = drill(Kind::MissionFaults, |script| {
        let mission = |east_m: f64, height_m: f64| OwnMission {
            speed_m_s: 1.0,
            points: route(&[[0.0, 0.0], [0.0, 60.0]], height_m),
            start: Some(route(&[[east_m, 0.0]], height_m)[0]),
            leaves_at_s: Vec::new(),
        };
        let missions = vec![mission(-12.0, 10.0), mission(12.0, 20.0)];
        script.scenario.task = Task::Own(OwnTask { variant: Variant::Off, missions });
    });
    for _ in 0..900 {
        drill.step();
    }
    assert_eq!(broken(drill.rules)[0], ["downwash"]);
}

#[test]
fn an_aircraft_that_is_to_return_and_lands_elsewhere_without_a_reason_breaks_a_rule() {
    let mut drill = drill(Kind::MissionFaults, |_| {});
    step_until(&mut drill, |drill| {
        drill.run.sky.world.phase(FIRST) == Phase::Moving
            && drill.run.sky.world.truth(FIRST).local.truncate().length() > 40.0
    });
    let Drill { run, .. } = &mut drill;
    assert!(run.operator.press(&mut run.sky.world, FIRST, Command::Return));
    step_until(&mut drill, |drill| drill.run.sky.world.truth(FIRST).mode == Mode::Rtl);
    // No button of the drill's operator.
    drill.run.sky.world.command(FIRST, "land", Command::Land);
    for _ in 0..80 {
        drill.step();
    }
    assert_eq!(broken(drill.rules)[0], ["returns"]);
}

#[test]
fn motors_that_stop_in_the_air_without_a_word_break_a_rule() {
    let mut drill = drill(Kind::MissionFaults, |_| {});
    let mut known = Known::with_effect(10, FIRST, Instant::ZERO);
    drill.step();
    assert_eq!(known.on_step(&drill.run), None, "not yet due");
    for _ in 0..30 {
        drill.step();
    }
    let found = known.on_step(&drill.run).unwrap();
    assert!(found.contains("its motors stop, and the page gives no cause within 2 s"), "{found}");
}
