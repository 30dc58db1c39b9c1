//! Answers of the ground service as text.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde::Serialize;
use wingbeat_api::measurements::Battery;
use wingbeat_api::{
    AuditLog, FleetAircraft, FleetCommand, FleetLeases, FleetLinkTest, FleetLinks, FleetPicture, LinkState,
    PlanPreview, Records, Users, VehicleLease, VehicleOutcome,
};

/// Prints a text; a closed pipe ends the program.
pub(crate) fn print(text: &str) -> Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output")
}

/// One line of JSON, or what a person reads.
pub(crate) fn answer<T: Serialize>(json: bool, value: &T, text: impl FnOnce(&T) -> String) -> Result<()> {
    if json { print(&format!("{}\n", serde_json::to_string(value)?)) } else { print(&text(value)) }
}

/// What others chose, for a terminal: characters that control it or turn the direction of text are shown as numbers.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if c.is_control() || turns {
            let _ = write!(shown, "[U+{:04X}]", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Rows under a head, each column as wide as it needs to be.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(head.get(column).map(|cell| cell.len())).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// A word of the API, as JSON has it.
pub(crate) fn word(value: &impl Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().map_or_else(|| json.to_string(), |word| word.replace('_', " "))
}

/// The display name; the address of one that never answered.
pub(crate) fn name(aircraft: &FleetAircraft) -> String {
    plain(aircraft.status.as_ref().map_or(&aircraft.address, |status| &status.name))
}

/// The display name of an id.
pub(crate) fn name_of(picture: &FleetPicture, id: &str) -> String {
    let status = picture.aircraft.iter().filter_map(|aircraft| aircraft.status.as_ref()).find(|s| s.id == id);
    plain(status.map_or(id, |status| &status.name))
}

/// Charge and voltage of the worst battery, and in flight how long it lasts and how long the aircraft needs to be down.
fn charge(battery: &Battery) -> String {
    let mut text = match battery.remaining_percent {
        Some(percent) => format!("{percent} % {:.1} V", battery.voltage_v),
        None => format!("{:.1} V", battery.voltage_v),
    };
    if let (Some(left_s), Some(needed_s)) = (battery.left_s, battery.needed_s) {
        let _ = write!(text, ", {left_s} s left, {needed_s} s needed");
    }
    text
}

/// A row for each aircraft, and what the operator can do.
pub(crate) fn status(picture: &FleetPicture) -> String {
    let row = |aircraft: &FleetAircraft| {
        let status = aircraft.status.as_ref();
        let battery = status.and_then(|s| s.measurements.battery.as_ref());
        let does = aircraft.problem.clone().or_else(|| status.map(|status| status.detail.clone()));
        let armed = status.map(|s| if s.flight_controller.armed { "armed" } else { "disarmed" }.to_owned());
        vec![
            name(aircraft),
            or_dash(status.map(|status| plain(&status.id))),
            links(aircraft),
            or_dash(status.map(|status| word(&status.state))),
            or_dash(status.and_then(|status| status.flight_controller.mode.clone()).map(|mode| plain(&mode))),
            or_dash(armed),
            or_dash(battery.map(charge)),
            or_dash(status.and_then(|s| s.navigation).map(|n| format!("{:.1} m", n.height_m))),
            plain(&does.unwrap_or_default()),
        ]
    };
    let rows: Vec<_> = picture.aircraft.iter().map(row).collect();
    let head = ["NAME", "ID", "LINK", "STATE", "MODE", "MOTORS", "BATTERY", "HEIGHT", "DETAIL"];
    let mut text = table(&head, &rows);
    for (what, possible, blocked) in [
        ("setup", picture.actions.setup, &picture.actions.setup_blocked),
        ("start", picture.actions.start, &picture.actions.start_blocked),
    ] {
        let state =
            if possible { "possible".to_owned() } else { format!("not possible: {}", plain(blocked)) };
        let _ = writeln!(text, "{what}: {state}");
    }
    text + &listening(picture)
}

/// What the radio receives by which aircraft are found; empty where the service does not listen.
fn listening(picture: &FleetPicture) -> String {
    let Some(listening) = &picture.listening else { return String::new() };
    let received = match &listening.problem {
        Some(problem) => plain(problem),
        None => format!("{} aircraft in the last 10 s", listening.received),
    };
    let mut text = format!("radio {}: {received}", plain(&listening.radio));
    for refusal in &listening.refused {
        let _ = write!(text, ", {} {}", refusal.count, plain(&refusal.reason));
    }
    text.push('\n');
    for one in &listening.unanswered {
        let _ = writeln!(text, "  {} at {}: {}", plain(&one.id), plain(&one.address), plain(&one.problem));
    }
    text
}

/// Up, or which link is not.
fn links(aircraft: &FleetAircraft) -> String {
    match (aircraft.link, aircraft.status.as_ref()) {
        (LinkState::NeverSeen, _) => "never seen".to_owned(),
        (LinkState::Lost, _) => {
            let age = aircraft.age_ms.map_or(String::new(), |age| format!(" {} s", age / 1000));
            format!("lost{age}")
        }
        (LinkState::Up, Some(status)) if status.flight_controller.link != LinkState::Up => {
            "no autopilot".to_owned()
        }
        (LinkState::Up, Some(status)) if status.radio.down.is_some() => "no radio".to_owned(),
        (LinkState::Up, _) => "up".to_owned(),
    }
}

/// Which console has each aircraft.
pub(crate) fn leases(picture: &FleetPicture) -> String {
    let row = |aircraft: &FleetAircraft| {
        let lease = aircraft.status.as_ref().and_then(|status| status.lease.as_ref());
        vec![
            name(aircraft),
            or_dash(lease.map(|lease| plain(&lease.console))),
            or_dash(lease.and_then(|lease| lease.console_id.clone())),
            or_dash(lease.map(|lease| format!("{:.1} s", lease.left_ms as f64 / 1e3))),
            or_dash(lease.map(|lease| {
                if lease.console == picture.console { "this service" } else { "another" }.into()
            })),
        ]
    };
    let rows: Vec<_> = picture.aircraft.iter().map(row).collect();
    table(&["AIRCRAFT", "CONSOLE", "CONSOLE ID", "LEFT", "HELD BY"], &rows)
}

/// Returns a line for each aircraft whose lease was asked for.
pub(crate) fn taken_over(picture: &FleetPicture, taken: &FleetLeases) -> String {
    let line = |vehicle: &VehicleLease| {
        let answer = vehicle.problem.as_deref().map_or("this service is in charge".to_owned(), plain);
        format!("{}: {answer}\n", name_of(picture, &vehicle.id))
    };
    taken.vehicles.iter().map(line).collect()
}

/// The missions that aircraft hold.
pub(crate) fn missions(picture: &FleetPicture) -> String {
    let rows: Vec<_> = picture
        .missions
        .iter()
        .map(|mission| {
            let holders: Vec<String> = mission.holders.iter().map(|id| name_of(picture, id)).collect();
            vec![
                plain(&mission.hash),
                mission.waypoints.len().to_string(),
                plain(&mission.name),
                holders.join(", "),
            ]
        })
        .collect();
    table(&["HASH", "WAYPOINTS", "NAME", "HELD BY"], &rows)
}

/// Whether a command has come to its end at an aircraft.
pub(crate) fn is_over(outcome: VehicleOutcome) -> bool {
    match outcome {
        VehicleOutcome::EffectSeen | VehicleOutcome::Failed | VehicleOutcome::Expired => true,
        VehicleOutcome::Sending | VehicleOutcome::Accepted => false,
    }
}

/// A command at one aircraft.
pub(crate) fn result(picture: &FleetPicture, result: &wingbeat_api::FleetCommandResult) -> String {
    let detail =
        if result.detail.is_empty() { String::new() } else { format!(": {}", plain(&result.detail)) };
    format!(
        "{} {}: {}{detail}",
        name_of(picture, &result.vehicle),
        plain(&result.vehicle),
        word(&result.outcome)
    )
}

/// A command and what became of it.
pub(crate) fn command(picture: &FleetPicture, command: &FleetCommand) -> String {
    let by = if command.by.is_empty() { String::new() } else { format!(" by {}", plain(&command.by)) };
    let why = if command.note.is_empty() { String::new() } else { format!(" ({})", plain(&command.note)) };
    let mut text = format!("{} {}{by}{why}\n", plain(&command.id), command.command);
    for one in &command.results {
        let _ = writeln!(text, "  {}", result(picture, one));
    }
    text
}

/// Receivers in rows, senders in columns: the share that was received of the last probes.
pub(crate) fn matrix(links: &FleetLinks) -> String {
    let short = |id: &str| plain(id).trim_start_matches('0').to_owned();
    let ids: Vec<&String> = links.aircraft.iter().map(|aircraft| &aircraft.id).collect();
    let senders: Vec<String> = ids.iter().map(|id| short(id)).collect();
    let head: Vec<&str> = std::iter::once("RECEIVES").chain(senders.iter().map(String::as_str)).collect();
    let cell = |receiver: &wingbeat_api::Links, sender: &str| {
        if receiver.id == sender {
            return String::new();
        }
        let link = receiver.links.iter().find(|link| link.from == sender);
        link.filter(|link| link.received + link.lost > 0).map_or("-".to_owned(), |link| {
            format!("{:.0} %", 100.0 * f64::from(link.received) / f64::from(link.received + link.lost))
        })
    };
    let row = |receiver: &wingbeat_api::Links| {
        std::iter::once(short(&receiver.id)).chain(ids.iter().map(|sender| cell(receiver, sender))).collect()
    };
    let rows: Vec<Vec<String>> = links.aircraft.iter().map(row).collect();
    let mut text = table(&head, &rows);
    for missing in &links.missing {
        let _ = writeln!(text, "{}: not known: {}", short(&missing.id), plain(&missing.reason));
    }
    text
}

/// How far a link test has come.
pub(crate) fn link_test(test: &FleetLinkTest) -> String {
    let number = test.test.number.map_or(String::new(), |number| format!(" {number}"));
    let mut text = format!("test{number} from {}\n", plain(&test.test.sender));
    let line = |who: &str, report: Option<&wingbeat_api::LinkTestReport>, did: &str| match report {
        None => format!("  {}: no answer\n", plain(who)),
        Some(report) => {
            let state =
                report.ended.as_deref().map_or("runs".to_owned(), |why| format!("ended: {}", plain(why)));
            format!(
                "  {}: {did} {}, {:.1} s, {state}\n",
                plain(who),
                report.count,
                report.ran_ms as f64 / 1e3
            )
        }
    };
    text.push_str(&line(&test.test.sender, test.sender.as_ref(), "sent"));
    for (id, report) in test.test.receivers.iter().zip(&test.receivers) {
        text.push_str(&line(id, report.as_ref(), "received"));
    }
    text
}

/// What is wrong with missions that would be sent, and what they take.
pub(crate) fn preview(preview: &PlanPreview) -> String {
    let mut text = String::new();
    for problem in &preview.problems {
        let _ =
            writeln!(text, "{}: {}", if problem.stops { "stops" } else { "warning" }, plain(&problem.text));
    }
    for flight in &preview.flights {
        let number = |value: Option<f64>, unit: &str| {
            value.map_or("-".to_owned(), |value| format!("{value:.0} {unit}"))
        };
        let _ = writeln!(
            text,
            "{}: {} to its first waypoint, {} long, {}, {} of the battery",
            plain(&flight.vehicle),
            number(flight.distance_m, "m"),
            number(flight.length_m, "m"),
            number(flight.duration_s, "s"),
            number(flight.needed_percent, "%")
        );
    }
    for note in &preview.notes {
        let _ = writeln!(text, "note: {}", plain(note));
    }
    text
}

/// Who did what.
pub(crate) fn audit(log: &AuditLog) -> String {
    let row = |entry: &wingbeat_api::AuditEntry| {
        vec![
            entry.number.to_string(),
            plain(&entry.time),
            if entry.user.is_empty() { "-".to_owned() } else { plain(&entry.user) },
            plain(&entry.address),
            entry.action.replace('_', " "),
            plain(&entry.what),
            entry.status.to_string(),
            plain(&entry.refused),
        ]
    };
    let rows: Vec<_> = log.entries.iter().map(row).collect();
    let mut text =
        table(&["NUMBER", "TIME", "USER", "ADDRESS", "ACTION", "WHAT", "STATUS", "REFUSED"], &rows);
    if log.lost > 0 || log.suppressed > 0 {
        let _ =
            writeln!(text, "{} entries lost, {} refused requests without an entry", log.lost, log.suppressed);
    }
    text
}

/// The recorded flights.
pub(crate) fn records(records: &Records) -> String {
    let row = |log: &wingbeat_api::RecordedLog| {
        let began =
            log.began_unix_ms.and_then(|ms| jiff::Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok());
        vec![
            plain(&log.file),
            plain(&log.name),
            began.map_or_else(|| "-".to_owned(), |at| format!("{at:.0}")),
            format!("{:.1} MB", log.length_bytes as f64 / 1e6),
            plain(&log.problem),
        ]
    };
    let rows: Vec<_> = records.logs.iter().map(row).collect();
    let mut text = table(&["FILE", "AIRCRAFT", "BEGAN", "LENGTH", ""], &rows);
    for results in &records.results {
        // A String takes everything.
        let _ = writeln!(text, "{}: {}", plain(&results.page), plain(&results.title));
    }
    if records.left_out > 0 {
        // A String takes everything.
        let _ = writeln!(text, "{} more are not listed", records.left_out);
    }
    text
}

/// The value of a query's key: what is neither a letter, a digit nor one of `-._~` as its bytes.
pub(crate) fn escaped(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte))
            }
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

/// The users.
pub(crate) fn users(users: &Users) -> String {
    let row = |user: &wingbeat_api::User| {
        vec![plain(&user.name), user.role.name().to_owned(), user.sessions.to_string()]
    };
    table(&["NAME", "ROLE", "SESSIONS"], &users.users.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_query_stands_for_itself() {
        assert_eq!(escaped("a-1/uav 2&é.mcap"), "a-1%2Fuav%202%26%C3%A9.mcap");
    }

    #[test]
    fn what_others_chose_does_not_control_the_terminal() {
        assert_eq!(plain("UAV 1 é 日"), "UAV 1 é 日");
        assert_eq!(plain("a\u{1b}[2J\u{202e}b\nc"), "a[U+001B][2J[U+202E]b[U+000A]c");
    }

    #[test]
    fn a_table_is_as_wide_as_its_cells() {
        let rows = [vec!["UAV 1".to_owned(), "x".to_owned()], vec!["é".to_owned(), "long".to_owned()]];
        assert_eq!(table(&["NAME", "B"], &rows), "NAME   B\nUAV 1  x\né      long\n");
    }
}
