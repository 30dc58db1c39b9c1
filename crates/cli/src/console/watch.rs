//! The fleet as it changes, a line for each change.

use anyhow::Result;
use serde_json::json;
use wingbeat_api::{FleetAircraft, FleetLogLine, FleetPicture, LinkState};
use wingbeat_ground::remote::Remote;

use super::orders::read;
use super::{Code, show};

/// Prints until the stream ends, or for so many events.
pub(crate) async fn run(remote: &Remote, json: bool, most: Option<u32>) -> Result<Code> {
    let mut events = remote.events().await?;
    let mut before: Option<FleetPicture> = None;
    let mut count = 0;
    loop {
        let (event, data) = events.next().await?;
        if json {
            show::print(&format!("{}\n", json!({ "event": event, "data": data })))?;
        } else {
            if event == "log" {
                let line: FleetLogLine = serde_json::from_value(data.clone()).map_err(wrong)?;
                show::print(&log(before.as_ref(), &line))?;
            }
            let now = read(events.apply(&event, &data))?;
            match &before {
                None => show::print(&show::status(&now))?,
                Some(before) => show::print(&changes(before, &now))?,
            }
            before = Some(now);
        }
        count += 1;
        if most == Some(count) {
            return Ok(Code::Done);
        }
    }
}

fn wrong(error: serde_json::Error) -> anyhow::Error {
    anyhow::anyhow!("found an event of another kind ({error}), expected one of this version's API")
}

fn time(time_ms: u64) -> String {
    format!("{:9.1}", time_ms as f64 / 1e3)
}

fn log(picture: Option<&FleetPicture>, line: &FleetLogLine) -> String {
    let name =
        picture.map_or_else(|| show::plain(&line.line.id), |picture| show::name_of(picture, &line.line.id));
    format!("{} {name}: {}\n", time(line.at_ms), show::plain(&line.line.text))
}

/// What an operator wants to be told of.
fn changes(before: &FleetPicture, now: &FleetPicture) -> String {
    let mut lines = Vec::new();
    for aircraft in &now.aircraft {
        let old = before.aircraft.iter().find(|old| old.address == aircraft.address);
        let told = told(aircraft);
        let old = old.map(self::told).unwrap_or_default();
        let new = told.iter().filter(|(what, value)| !old.contains(&(what, value.clone())));
        let new: Vec<String> = new.map(|(what, value)| format!("{what} {value}")).collect();
        if !new.is_empty() {
            lines.push(format!("{}: {}", show::name(aircraft), new.join(", ")));
        }
    }
    for command in &now.commands {
        let old = before.commands.iter().find(|old| old.id == command.id);
        for result in &command.results {
            if !old.is_some_and(|old| old.results.contains(result)) {
                lines.push(format!("{}: {}", command.command, show::result(now, result)));
            }
        }
    }
    lines.into_iter().map(|line| format!("{} {line}\n", time(now.time_ms))).collect()
}

fn told(aircraft: &FleetAircraft) -> Vec<(&'static str, String)> {
    let link = match aircraft.link {
        LinkState::NeverSeen => "never seen",
        LinkState::Up => "up",
        LinkState::Lost => "lost",
    };
    let mut told = vec![("link", link.to_owned())];
    if let Some(problem) = &aircraft.problem {
        told.push(("problem:", show::plain(problem)));
    }
    if let Some(status) = &aircraft.status {
        let autopilot = &status.flight_controller;
        told.push(("state", format!("{:?}", status.state)));
        told.push(("mode", show::plain(autopilot.mode.as_deref().unwrap_or("not known"))));
        told.push(("motors", if autopilot.armed { "armed" } else { "disarmed" }.to_owned()));
        if !status.engaged {
            told.push(("flown by", "its pilot".to_owned()));
        }
        if status.failsafe {
            told.push(("failsafe", "of its flight controller".to_owned()));
        }
    }
    told
}
