//! Commands for many, against fake aircraft over real sockets.

use crate::support;

use std::time::Duration;

use support::{Answers, Fake, all_up, eventually, ground, id, picture, request, result};
use wingbeat_api::{Command, CommandProgress, CommandStage, Phase, StateId, VehicleId, VehicleOutcome};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_repeated_with_the_same_id_until_it_is_accepted() {
    let fake = Fake::start(1).await;
    fake.lock().answers = Answers::BusyFor(3);
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    handle.command(request("s", Command::Setup, &[])).await.expect("setup is possible");
    picture(&handle, "its effect is seen", |p| result(p, "s", &id(1)).0 == VehicleOutcome::EffectSeen).await;
    let received = fake.received();
    assert_eq!(received.len(), 4);
    assert!(received.iter().all(|r| r.id == "s" && r.command == Command::Setup), "{received:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_command_is_repeated_until_its_effect_is_seen() {
    let fake = Fake::start(1).await;
    fake.lock().effect = false;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    handle.command(request("l", Command::Land, &[])).await.expect("landing is always possible");
    picture(&handle, "it is accepted", |p| result(p, "l", &id(1)).0 == VehicleOutcome::Accepted).await;
    eventually("it is repeated after it was accepted", async || (fake.received().len() >= 3).then_some(()))
        .await;
    // The daemon restarts and has forgotten: the repetition makes it known again.
    fake.lock().status.commands.clear();
    eventually("it is known again", async || (!fake.lock().status.commands.is_empty()).then_some(())).await;
    fake.lock().status.commands[0].stage = CommandStage::EffectSeen;
    picture(&handle, "its effect is seen", |p| result(p, "l", &id(1)).0 == VehicleOutcome::EffectSeen).await;
    let received = fake.received().len();
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(fake.received().len(), received, "nothing is sent after the effect was seen");
}

/// So that a connection is open when a command is to go. A renewal that is under way has it; then the next command is looked at.
#[tokio::test(flavor = "multi_thread")]
async fn commands_go_by_the_connection_that_renews_the_lease() {
    let fake = Fake::start(1).await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    for command in 0..20 {
        let renewed = fake.lock().leased_from.len();
        eventually("its lease is renewed", async || (fake.lock().leased_from.len() > renewed).then_some(()))
            .await;
        let name = format!("h{command}");
        handle.command(request(&name, Command::Hold, &[id(1)])).await.expect("holding is always possible");
        picture(&handle, "it is seen", |p| result(p, &name, &id(1)).0 == VehicleOutcome::EffectSeen).await;
        let inner = fake.lock();
        if inner.commanded_from.iter().any(|port| inner.leased_from.contains(port)) {
            return;
        }
    }
    panic!("20 commands came, none by a connection of its lease");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_command_never_waits_for_a_slow_setup() {
    let fake = Fake::start(1).await;
    fake.lock().answers = Answers::Never;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    handle.command(request("s", Command::Setup, &[])).await.expect("setup is possible");
    eventually("setup hangs at the aircraft", async || (!fake.received().is_empty()).then_some(())).await;
    fake.lock().answers = Answers::Accept;
    handle.command(request("h", Command::Hold, &[id(1)])).await.expect("holding is always possible");
    let seen =
        picture(&handle, "hold is seen", |p| result(p, "h", &id(1)).0 == VehicleOutcome::EffectSeen).await;
    let overtaken = (VehicleOutcome::Failed, "overtaken by hold".to_owned());
    assert_eq!(result(&seen, "s", &id(1)), overtaken);
    let order: Vec<_> = fake.received().iter().map(|r| r.command).collect();
    assert_eq!(order.last(), Some(&Command::Hold), "nothing older comes after it: {order:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_shown_with_its_reason_and_not_repeated() {
    let fakes = [Fake::start(1).await, Fake::start(2).await];
    fakes[0].lock().answers = Answers::Refuse("the pilot has control");
    let handle = ground(&fakes).await;
    picture(&handle, "both report", all_up).await;
    handle.command(request("r", Command::Return, &[])).await.expect("returning is always possible");
    let shown = picture(&handle, "both are answered", |p| {
        result(p, "r", &id(1)).0 == VehicleOutcome::Failed
            && result(p, "r", &id(2)).0 == VehicleOutcome::EffectSeen
    })
    .await;
    assert_eq!(result(&shown, "r", &id(1)).1, "refused in state Start: the pilot has control");
    assert_eq!(fakes[0].received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lost_answer_of_a_command_is_made_up_for_by_the_status() {
    let fake = Fake::start(1).await;
    fake.lock().answers = Answers::Never;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    handle.command(request("e", Command::Engage, &[id(1)])).await.expect("its status arrives");
    eventually("it arrived", async || (!fake.received().is_empty()).then_some(())).await;
    let (command, stage, detail) = (Command::Engage, CommandStage::EffectSeen, "engaged".to_owned());
    fake.lock().status.commands.push(CommandProgress { id: "e".to_owned(), command, stage, detail });
    let shown = picture(&handle, "it is seen", |p| result(p, "e", &id(1)).0 != VehicleOutcome::Sending).await;
    assert_eq!(result(&shown, "e", &id(1)), (VehicleOutcome::EffectSeen, "engaged".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn land_waits_for_an_aircraft_that_is_out_of_reach() {
    let fake = Fake::start(1).await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    fake.die().await;
    handle.command(request("l", Command::Land, &[])).await.expect("landing is always possible");
    // The first try may meet a connection that is still being closed; those after it meet a closed port.
    let refused = (VehicleOutcome::Sending, "repeating: connection refused".to_owned());
    picture(&handle, "it is being repeated", |p| result(p, "l", &id(1)) == refused).await;
    fake.revive().await;
    picture(&handle, "its effect is seen", |p| result(p, "l", &id(1)).0 == VehicleOutcome::EffectSeen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn land_all_is_also_for_an_aircraft_that_is_first_heard_afterwards() {
    let fakes = [Fake::start(1).await, Fake::start(2).await];
    fakes[1].die().await;
    let handle = ground(&fakes).await;
    picture(&handle, "the first reports", |p| p.aircraft.iter().any(|a| a.status.is_some())).await;
    let reply = handle.command(request("l", Command::Land, &[])).await.expect("landing is always possible");
    assert_eq!(reply.vehicles, [id(1)]);
    fakes[1].revive().await;
    eventually("the second lands too", async || (!fakes[1].received().is_empty()).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_flies_for_itself_is_set_up_without_the_others() {
    let fakes = [Fake::start(1).await, Fake::start(2).await];
    for fake in &fakes {
        fake.lock().status.swarm = None;
    }
    let handle = ground(&fakes).await;
    picture(&handle, "both report", all_up).await;
    let reply = handle.command(request("s1", Command::Setup, &[id(2)])).await.expect("one of two");
    assert_eq!(reply.vehicles, [id(2)]);
    {
        let mut second = fakes[1].lock();
        second.status.state = StateId::SetupFinished;
        second.status.phase = Phase::Ready;
    }
    let ready = |p: &wingbeat_api::FleetPicture| {
        p.aircraft.iter().any(|a| a.status.as_ref().is_some_and(|s| s.phase == Phase::Ready))
    };
    picture(&handle, "the second is set up", ready).await;
    let reply = handle.command(request("s2", Command::Setup, &[])).await.expect("the first is left");
    assert_eq!(reply.vehicles, [id(1)], "an aircraft that is set up is not asked again");
    let refused = handle.command(request("s3", Command::Start, &[id(1)])).await.expect_err("not set up");
    assert_eq!(refused.status(), 409);
    let reply = handle.command(request("s4", Command::Start, &[id(2)])).await.expect("set up");
    assert_eq!(reply.vehicles, [id(2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_and_start_are_for_all_and_only_when_all_are_ready() {
    let fakes = [Fake::start(1).await, Fake::start(2).await];
    let handle = ground(&fakes).await;
    picture(&handle, "both report", all_up).await;
    let refused = handle.command(request("s1", Command::Start, &[])).await.expect_err("not set up");
    assert_eq!(
        (refused.status(), refused.to_string().as_str()),
        (409, "UAV 1: its state is Start, expected one that is set up and waits for the start")
    );
    let refused = handle.command(request("s2", Command::Setup, &[id(1)])).await.expect_err("one of two");
    assert_eq!(refused.status(), 400);
    let both = [id(2), id(1)];
    let reply = handle.command(request("s3", Command::Setup, &both)).await.expect("both are named");
    assert_eq!(reply.vehicles, [id(1), id(2)]);
    for fake in &fakes {
        let mut aircraft = fake.lock();
        aircraft.status.state = StateId::SetupFinished;
        aircraft.status.phase = Phase::Ready;
    }
    picture(&handle, "start is possible", |p| p.actions.start && !p.actions.setup).await;
    handle.command(request("s4", Command::Start, &[])).await.expect("all are ready");
    eventually("both have it", async || fakes.iter().all(|fake| fake.received().len() == 2).then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_id_is_carried_out_once() {
    let fake = Fake::start(1).await;
    let handle = ground(std::slice::from_ref(&fake)).await;
    picture(&handle, "its status arrives", all_up).await;
    let first = handle.command(request("h", Command::Hold, &[])).await.expect("possible");
    picture(&handle, "its effect is seen", |p| result(p, "h", &id(1)).0 == VehicleOutcome::EffectSeen).await;
    assert_eq!(handle.command(request("h", Command::Hold, &[])).await.expect("the same"), first);
    let other = handle.command(request("h", Command::Land, &[])).await.expect_err("another command");
    assert_eq!(other.status(), 409);
    assert_eq!((fake.received().len(), handle.picture().await.expect("running").commands.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exclusion_goes_to_all_that_fly_in_the_swarm() {
    let fakes = [Fake::start(1).await, Fake::start(2).await, Fake::start(3).await];
    let handle = ground(&fakes).await;
    picture(&handle, "all report", all_up).await;
    let member = |n| VehicleId::from_hexadecimal(&id(n)).expect("an id");
    let exclude = |id: &str, n| request(id, Command::Exclude { member: member(n) }, &[]);
    let refused = async |request| handle.command(request).await.expect_err("refused").to_string();
    let no_swarm = refused(exclude("x1", 2)).await;
    assert!(no_swarm.contains("no swarm flies"), "{no_swarm}");
    assert!(fakes.iter().all(|fake| fake.received().is_empty()), "no aircraft received a command");

    // The first two hold a plan, the third flies for itself.
    for fake in &fakes[..2] {
        fake.lock().status.swarm.as_mut().expect("a swarm").slot = Some(0);
    }
    fakes[2].lock().status.swarm = None;
    fakes[1].lock().answers = Answers::Never;
    picture(&handle, "the plan is seen", |p| {
        let planned = |a: &wingbeat_api::FleetAircraft| {
            a.status.as_ref().and_then(|s| s.swarm.as_ref()).is_some_and(|s| s.slot.is_some())
        };
        p.aircraft.iter().filter(|a| planned(a)).count() == 2
            && p.aircraft.iter().any(|a| a.status.as_ref().is_some_and(|s| s.swarm.is_none()))
    })
    .await;
    let outside = refused(exclude("x5", 3)).await;
    assert!(outside.contains("no member of a swarm"), "{outside}");
    let reply = handle.command(exclude("x6", 2)).await.expect("two fly");
    assert_eq!(reply.vehicles, [id(1), id(2)]);
    let shown = picture(&handle, "the first received it", |p| {
        result(p, "x6", &id(1)).0 == VehicleOutcome::EffectSeen
    })
    .await;
    assert_eq!(result(&shown, "x6", &id(2)).0, VehicleOutcome::Sending);
    let entry = shown.commands.iter().find(|c| c.id == "x6").expect("it is shown");
    assert_eq!(entry.command, Command::Exclude { member: member(2) });
    let received = fakes[0].received();
    assert_eq!(received.iter().map(|r| r.command).collect::<Vec<_>>(), [entry.command]);
    // A landing of the one that does not answer waits for nothing and is not ended by its exclusion.
    fakes[1].lock().answers = Answers::Accept;
    handle.command(request("l", Command::Land, &[id(2)])).await.expect("landing is always possible");
    picture(&handle, "it lands", |p| result(p, "l", &id(2)).0 == VehicleOutcome::EffectSeen).await;
}
