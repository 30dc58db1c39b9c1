//! Commands for many, followed until each aircraft has shown their effect.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};
use wingbeat_api::{
    Command, FleetCommand, FleetCommandNote, FleetCommandReply, FleetCommandRequest, FleetPicture,
    VehicleOutcome, paths,
};
use wingbeat_ground::remote::Method;
use wingbeat_ground::remote::{Events, Fault, Remote};

use super::service::Service;
use super::{Code, show};

/// Before a request without an answer is made again.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Which aircraft are meant.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct Targets {
    /// The aircraft: ids of 16 hexadecimal digits, or display names.
    #[arg(value_name = "AIRCRAFT")]
    aircraft: Vec<String>,
    /// All aircraft.
    #[arg(long)]
    all: bool,
}

/// How a command is given.
#[derive(Args, Clone, Debug)]
pub(crate) struct Giving {
    /// The command's id, 1 to 64 visible ASCII characters: given again with the same id it is the same command. Without it a new one.
    #[arg(long)]
    id: Option<String>,
    /// Why, in the operator's words: it is shown with the command, and sent to no aircraft.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// How long its effect is waited for, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..=3600))]
    within: u16,
    /// End when the service has taken it.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    pub(crate) service: Service,
}

/// A command for aircraft.
#[derive(Args, Clone, Debug)]
pub(crate) struct Order {
    #[command(flatten)]
    pub(crate) targets: Targets,
    #[command(flatten)]
    pub(crate) giving: Giving,
}

/// The ids of those that are meant; none are all.
pub(crate) fn targets(picture: &FleetPicture, targets: &Targets) -> Result<Vec<String>> {
    targets.aircraft.iter().map(|asked| id_of(picture, asked)).collect()
}

impl Targets {
    /// The ids of those that are meant, all of them by their ids too.
    pub(crate) fn listed(&self, picture: &FleetPicture) -> Result<Vec<String>> {
        if self.all {
            let known = picture.aircraft.iter().filter_map(|aircraft| aircraft.status.as_ref());
            return Ok(known.map(|status| status.id.clone()).collect());
        }
        targets(picture, self)
    }
}

/// The id of the one aircraft that has it, or this display name.
pub(crate) fn id_of(picture: &FleetPicture, asked: &str) -> Result<String> {
    let known = || picture.aircraft.iter().filter_map(|aircraft| aircraft.status.as_ref());
    if let Some(status) = known().find(|status| status.id == asked) {
        return Ok(status.id.clone());
    }
    let mut named = known().filter(|status| status.name == asked).map(|status| status.id.clone());
    match (named.next(), named.next()) {
        (Some(id), None) => Ok(id),
        (Some(one), Some(other)) => {
            bail!("aircraft {asked:?}: found {one} and {other} of this name, expected an id; nothing is sent")
        }
        (None, _) => {
            let all: Vec<String> =
                known().map(|status| format!("{} ({})", show::plain(&status.name), status.id)).collect();
            let all =
                if all.is_empty() { "one that has answered; none has".to_owned() } else { all.join(", ") };
            bail!("aircraft {asked:?}: found no such id or name, expected {all}; nothing is sent")
        }
    }
}

/// The picture that a stream begins with.
pub(crate) async fn first(events: &mut Events) -> Result<FleetPicture, Fault> {
    loop {
        let (event, data) = events.next().await?;
        if event == "picture" {
            return read(events.apply(&event, &data));
        }
    }
}

/// The picture in its types.
pub(crate) fn read(picture: &serde_json::Value) -> Result<FleetPicture, Fault> {
    serde_json::from_value(picture.clone())
        .map_err(|error| Fault::Unanswered(format!("found a picture of another kind: {error}")))
}

/// Gives a command and follows it.
pub(crate) async fn give(remote: &Remote, order: &Order, command: Command) -> Result<Code> {
    let mut events = remote.events().await?;
    let picture = first(&mut events).await?;
    let vehicles = targets(&picture, &order.targets)?;
    send(remote, &order.giving, command, vehicles, events).await
}

/// Excludes a member, which concerns all that fly with it.
pub(crate) async fn exclude(remote: &Remote, member: &str, giving: &Giving) -> Result<Code> {
    let mut events = remote.events().await?;
    let picture = first(&mut events).await?;
    let id = id_of(&picture, member)?;
    let Some(member) = wingbeat_wire::VehicleId::from_hexadecimal(&id) else {
        bail!("aircraft {member:?}: found the id {id:?}, expected 16 hexadecimal digits");
    };
    send(remote, giving, Command::Exclude { member }, vec![], events).await
}

async fn send(
    remote: &Remote,
    giving: &Giving,
    command: Command,
    vehicles: Vec<String>,
    events: Events,
) -> Result<Code> {
    let end = Instant::now() + Duration::from_secs(giving.within.into());
    let id = match &giving.id {
        Some(id) => id.clone(),
        None => new_id()?,
    };
    let request = FleetCommandRequest { id: id.clone(), command, vehicles };
    // The same id until there is an answer: it is one command, however often it is posted.
    let reply: FleetCommandReply = loop {
        match remote.ask(Method::POST, paths::FLEET_COMMANDS, Some(&request)).await {
            Ok(answer) => break answer.json()?,
            Err(Fault::NotReached(_) | Fault::Unanswered(_)) if Instant::now() + AGAIN_AFTER < end => {
                sleep(AGAIN_AFTER).await;
            }
            Err(Fault::NotReached(why) | Fault::Unanswered(why)) => {
                return Err(Fault::Unanswered(format!(
                    "{command} {id}: {why}; whether it was sent is not known"
                ))
                .into());
            }
            Err(fault) => return Err(fault.into()),
        }
    };
    if let Some(note) = &giving.reason {
        let note = FleetCommandNote { id: id.clone(), note: note.clone() };
        if let Err(fault) = remote.ask(Method::PUT, paths::FLEET_COMMAND_NOTE, Some(&note)).await {
            eprintln!("wingbeat: --reason: the command is given, its reason is not kept: {fault}");
        }
    }
    if giving.no_wait {
        show::answer(giving.service.json, &reply, |reply| {
            format!(
                "{command} {}: sent to {} aircraft; wingbeat fleet outcome {}\n",
                reply.id,
                reply.vehicles.len(),
                reply.id
            )
        })?;
        return Ok(Code::Done);
    }
    if !giving.service.json {
        show::print(&format!("{command} {id}: sent to {} aircraft\n", reply.vehicles.len()))?;
    }
    follow(remote, &id, Some(events), end, giving.service.json).await
}

/// An id that no other command has.
fn new_id() -> Result<String> {
    Ok(format!("cli-{}", wingbeat_keys::file::hexadecimal(&wingbeat_keys::file::random()?[..12])))
}

/// What the service shows of a command until it is over everywhere, or the time is.
pub(crate) async fn follow(
    remote: &Remote,
    id: &str,
    mut events: Option<Events>,
    end: Instant,
    json: bool,
) -> Result<Code> {
    let mut last: Option<(FleetPicture, FleetCommand)> = None;
    while Instant::now() < end {
        let mut stream = match events.take() {
            Some(stream) => stream,
            None => match remote.events().await {
                Ok(stream) => stream,
                Err(fault @ Fault::Refused { .. }) => return Err(fault.into()),
                Err(_) => {
                    sleep(AGAIN_AFTER).await;
                    continue;
                }
            },
        };
        // The stream ends with an error, and the time with none.
        while let Ok(Ok((event, data))) = timeout_at(end, stream.next()).await {
            let picture = stream.apply(&event, &data);
            let Some(now) = shown(picture, id) else { continue };
            let seen = last.as_ref().map(|(_, seen)| seen);
            if seen == Some(&now) {
                continue;
            }
            let picture = read(picture)?;
            for result in
                now.results.iter().filter(|result| !seen.is_some_and(|seen| seen.results.contains(result)))
            {
                if !json {
                    show::print(&format!("{}\n", show::result(&picture, result)))?;
                }
            }
            let is_over = now.results.iter().all(|result| show::is_over(result.outcome));
            last = Some((picture, now));
            if is_over {
                return finish(last, id, json);
            }
        }
    }
    finish(last, id, json)
}

fn shown(picture: &serde_json::Value, id: &str) -> Option<FleetCommand> {
    let command = picture["commands"].as_array()?.iter().find(|command| command["id"] == id)?;
    serde_json::from_value(command.clone()).ok()
}

fn finish(last: Option<(FleetPicture, FleetCommand)>, id: &str, json: bool) -> Result<Code> {
    let Some((picture, command)) = last else {
        let why = format!(
            "command {id}: the service shows none of this id (the last 16 are shown); what became of it is not known"
        );
        return Err(Fault::Unanswered(why).into());
    };
    let count =
        |outcome: VehicleOutcome| command.results.iter().filter(|result| result.outcome == outcome).count();
    let done = count(VehicleOutcome::EffectSeen);
    let all = command.results.len();
    let open = command.results.iter().filter(|result| !show::is_over(result.outcome)).count();
    if json {
        let results: Vec<_> = command
            .results
            .iter()
            .map(|result| {
                let name = show::name_of(&picture, &result.vehicle);
                json!({ "vehicle": result.vehicle, "name": name, "outcome": result.outcome, "detail": result.detail })
            })
            .collect();
        let answer = json!({
            "id": command.id, "command": command.command, "done": done, "of": all, "open": open, "results": results
        });
        show::print(&format!("{answer}\n"))?;
    } else if done == all {
        show::print(&format!("{}: seen at {all} aircraft\n", command.command))?;
    } else {
        let open =
            if open > 0 { format!(", {open} not over: wingbeat fleet outcome {id}") } else { String::new() };
        show::print(&format!("{}: seen at {done} of {all} aircraft{open}\n", command.command))?;
    }
    Ok(if done == all { Code::Done } else { Code::NotAll })
}
