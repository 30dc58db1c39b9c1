//! `wingbeat fleet`, where it is a console: the whole API of a ground service. Exit code 0: done; 1: not at every aircraft; 2: refused
//! or not reached, and nothing was done; 3: there was no answer, and whether it was done is not known.

mod alarms;
mod bundle;
mod checklist;
mod flight_setups;
#[cfg(unix)]
mod live;
mod missions;
mod orders;
mod parameters;
mod regions;
mod service;
mod show;
mod spacing;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use serde_json::{Value, json};
use tokio::time::Instant;
use wingbeat_api::{
    Access, ApiError, FleetAircraft, FleetCommandNote, FleetLeases, FleetPicture, FleetTakeOver, paths,
};
use wingbeat_ground::remote::{Fault, Method, Remote};

pub(crate) use bundle::READ_CLOCK;
use orders::{Giving, Order};
#[cfg(unix)]
pub(crate) use service::Credentials;
use service::Service;

/// What becomes the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// All of it was done.
    Done,
    /// Not at every aircraft.
    NotAll,
}

/// A console's commands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Sign in to a ground service; the session is kept for the other commands (mode 600, in the user's own folder).
    SignIn {
        #[command(flatten)]
        service: Service,
    },
    /// End the session that is kept.
    SignOut {
        #[command(flatten)]
        service: Service,
    },
    /// Who asks: whether the service has users, and whose session this is.
    Session {
        #[command(flatten)]
        service: Service,
    },
    /// The fleet as it is now: a row for each aircraft, and whether *Setup* and *Start* are possible.
    Status {
        #[command(flatten)]
        service: Service,
    },
    /// One aircraft with all that is known of it, its parameters included, as JSON.
    Aircraft {
        /// Its id, or its display name.
        aircraft: String,
        #[command(flatten)]
        service: Service,
    },
    /// The fleet as it changes: log lines, states, modes, links, what becomes of commands. With --json every event of the stream.
    Watch {
        /// End after so many events.
        #[arg(long, value_name = "NUMBER")]
        events: Option<u32>,
        #[command(flatten)]
        service: Service,
    },
    /// The fleet live for Foxglove: serves its WebSocket on this computer until it is ended. What is seen may be seen by this session.
    #[cfg(unix)]
    Live {
        /// Where Foxglove connects: an address of this computer alone, because its WebSocket knows no users.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8765")]
        listen: std::net::SocketAddr,
        #[command(flatten)]
        service: Service,
    },
    /// Form the swarm, or prepare for a mission of each.
    Setup(Order),
    /// Fly the mission.
    Start(Order),
    /// Stop, and hold the position.
    Hold(Order),
    /// Fly on after a hold, where each flies a mission of its own.
    Resume(Order),
    /// Return to launch.
    Return(Order),
    /// Land where it is.
    Land(Order),
    /// Recover control: hand the aircraft to its pilot, and command nothing any more.
    Recover(Order),
    /// Let the agent command again after a pilot had the aircraft.
    Engage(Order),
    /// On the ground: set the flight controller's parameters that stand against a flight. The pilot's values come back after it.
    SetParameters(Order),
    /// No longer wait for a member of the swarm. Where it receives that, it holds and then lands.
    Exclude {
        /// Its id, or its display name.
        member: String,
        #[command(flatten)]
        giving: Giving,
    },
    /// What became of a command; waits until it is over at every aircraft.
    Outcome {
        /// The command's id.
        id: String,
        /// How long it is waited for, seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..=3600))]
        within: u16,
        #[command(flatten)]
        service: Service,
    },
    /// The last commands and what became of them.
    Commands {
        #[command(flatten)]
        service: Service,
    },
    /// The alarms of the fleet, with times and who acknowledged them; those that have ended too.
    Alarms {
        /// Acknowledge these, by their numbers, for all consoles.
        #[arg(long, value_name = "NUMBER", num_args = 1.., conflicts_with = "acknowledge_all")]
        acknowledge: Vec<u64>,
        /// Acknowledge all that last.
        #[arg(long)]
        acknowledge_all: bool,
        #[command(flatten)]
        service: Service,
    },
    /// Note why a command was given.
    Note {
        /// The command's id.
        id: String,
        /// Why, at most 200 characters.
        text: String,
        #[command(flatten)]
        service: Service,
    },
    /// Missions: list, read, preview, send, export.
    #[command(subcommand)]
    Mission(missions::Command),
    /// The flight controllers' parameters: read, compare, export, set.
    #[command(subcommand)]
    Parameters(parameters::Command),
    /// The flight controllers' fence: check a file, send, read back, compare, clear.
    #[command(subcommand)]
    Fence(regions::Command),
    /// The flight controllers' rally points: check a file, send, read back, compare, clear.
    #[command(subcommand)]
    Rally(regions::Command),
    /// How the aircraft are to fly: protocol, formation, distances, speed, manners. Show, set, clear.
    #[command(subcommand)]
    FlightSetup(flight_setups::Command),
    /// Which console holds the lease of each aircraft.
    Lease {
        #[command(flatten)]
        service: Service,
    },
    /// Takes the leases of aircraft over from the consoles that hold them.
    TakeOver {
        #[command(flatten)]
        targets: orders::Targets,
        #[command(flatten)]
        service: Service,
    },
    /// What each aircraft receives of every other.
    Links {
        #[command(flatten)]
        service: Service,
    },
    /// The test of a link that runs, or the last (`wingbeat linktest run` begins one).
    LinkTest {
        /// End it.
        #[arg(long, conflicts_with = "record_of")]
        end: bool,
        /// Print what this receiver recorded.
        #[arg(long, value_name = "ID")]
        record_of: Option<String>,
        #[command(flatten)]
        service: Service,
    },
    /// Collect the logs of all aircraft in one folder: OUT/EXPERIMENT/UTC/aircraft-N, with a manifest. Exit code 1 where something is
    /// missing.
    Bundle(bundle::Arguments),
    /// The lab's checklist and what of it is ticked; ticking it, and what was kept of it with flights.
    Checklist(Box<checklist::Arguments>),
    /// Distances between aircraft that stand, how these wander, and the gnss_error_m that covers it. Two minutes of it before a
    /// flight show a receiver that errs; a tape shows a constant offset.
    Spacing(spacing::Arguments),
    /// The formations that a plan can name, each with its places, as JSON.
    Formations {
        /// How many aircraft.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=128))]
        aircraft: u8,
        /// Distance between slots, metres.
        #[arg(long, default_value_t = 50.0)]
        distance_m: f64,
        #[command(flatten)]
        service: Service,
    },
    /// The recorded flights that the service replays on its page; what of one is replayed, as JSON.
    Records {
        /// A log, as it is listed.
        #[arg(long, value_name = "FILE")]
        track: Option<String>,
        /// How many samples of it at most.
        #[arg(long, value_name = "NUMBER", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..=20_000))]
        samples: u32,
        #[command(flatten)]
        service: Service,
    },
    /// Who did what through the service: the last 500 entries.
    Audit {
        /// Only entries after the one with this number.
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: u64,
        #[command(flatten)]
        service: Service,
    },
    /// The users of the service, and how many sessions each has.
    Users {
        #[command(flatten)]
        service: Service,
    },
    /// End every session of a user.
    EndSessions {
        /// The user's name.
        name: String,
        #[command(flatten)]
        service: Service,
    },
    /// Ask the API itself: prints the answer's body.
    Api {
        /// GET, POST, PUT or DELETE.
        method: String,
        /// The path with its query, for example /api/v1/fleet/links.
        path: String,
        /// The file of the JSON body; - is standard input.
        #[arg(long, value_name = "FILE")]
        body: Option<PathBuf>,
        #[command(flatten)]
        service: Service,
    },
}

impl Command {
    fn service(&self) -> &Service {
        match self {
            Self::SignIn { service }
            | Self::SignOut { service }
            | Self::Session { service }
            | Self::Status { service }
            | Self::Aircraft { service, .. }
            | Self::Watch { service, .. }
            | Self::Outcome { service, .. }
            | Self::Commands { service }
            | Self::Alarms { service, .. }
            | Self::Note { service, .. }
            | Self::Lease { service }
            | Self::TakeOver { service, .. }
            | Self::Links { service }
            | Self::LinkTest { service, .. }
            | Self::Formations { service, .. }
            | Self::Records { service, .. }
            | Self::Audit { service, .. }
            | Self::Users { service }
            | Self::EndSessions { service, .. }
            | Self::Api { service, .. } => service,
            #[cfg(unix)]
            Self::Live { service, .. } => service,
            Self::Setup(order)
            | Self::Start(order)
            | Self::Hold(order)
            | Self::Resume(order)
            | Self::Return(order)
            | Self::Land(order)
            | Self::Recover(order)
            | Self::Engage(order)
            | Self::SetParameters(order) => &order.giving.service,
            Self::Exclude { giving, .. } => &giving.service,
            Self::Bundle(arguments) => &arguments.service,
            Self::Checklist(arguments) => arguments.service(),
            Self::Spacing(arguments) => &arguments.service,
            Self::Mission(command) => command.service(),
            Self::Parameters(command) => command.service(),
            Self::FlightSetup(command) => command.service(),
            Self::Fence(command) | Self::Rally(command) => command.service(),
        }
    }
}

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    let service = command.service();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        match command {
            Command::SignIn { service } => {
                show::answer(service.json, &service::sign_in(service).await?, session)?
            }
            Command::SignOut { service } => service::sign_out(service).await?,
            command => {
                let session = service.credentials.open(&service.ground).await?;
                let done = tokio::select! {
                    done = ask(&session.remote, command) => done,
                    () = crate::end_signal()? => Ok(Code::Done),
                };
                session.close().await;
                return done;
            }
        }
        Ok(Code::Done)
    });
    Ok(match done {
        Ok(Code::Done) => ExitCode::SUCCESS,
        Ok(Code::NotAll) => ExitCode::from(1),
        Err(error) => failed(service, &error),
    })
}

fn failed(service: &Service, error: &anyhow::Error) -> ExitCode {
    if crate::is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let fault = error.downcast_ref::<Fault>();
    let message = show::plain(&format!("{error:#}"));
    if service.json {
        let code = fault.map_or("bad_request", Fault::code).to_owned();
        eprintln!("{}", json!(ApiError { code, message }));
    } else {
        eprintln!("wingbeat: {message}{}", fault.map_or("", service::advice));
    }
    match fault {
        Some(Fault::Unanswered(_)) => ExitCode::from(3),
        Some(Fault::Input(_) | Fault::NotReached(_) | Fault::Refused { .. }) | None => ExitCode::from(2),
    }
}

fn session(access: &Access) -> String {
    match (&access.user, access.login) {
        (Some(user), _) => {
            let minutes = user.ends_in_ms / 60_000;
            format!(
                "{}, {}, for {} h {} min\n",
                show::plain(&user.name),
                user.role.name(),
                minutes / 60,
                minutes % 60
            )
        }
        (None, true) => {
            format!("signed out{}\n", access.ended.as_ref().map_or(String::new(), |why| format!(": {why}")))
        }
        (None, false) => "the service has no users: whatever reaches it commands\n".to_owned(),
    }
}

async fn ask(remote: &Remote, command: &Command) -> Result<Code> {
    use wingbeat_api::Command as Ordered;
    let json = command.service().json;
    match command {
        Command::Setup(order) => return orders::give(remote, order, Ordered::Setup).await,
        Command::Start(order) => return orders::give(remote, order, Ordered::Start).await,
        Command::Hold(order) => return orders::give(remote, order, Ordered::Hold).await,
        Command::Resume(order) => return orders::give(remote, order, Ordered::Resume).await,
        Command::Return(order) => return orders::give(remote, order, Ordered::Return).await,
        Command::Land(order) => return orders::give(remote, order, Ordered::Land).await,
        Command::Recover(order) => return orders::give(remote, order, Ordered::RecoverControl).await,
        Command::Engage(order) => return orders::give(remote, order, Ordered::Engage).await,
        Command::SetParameters(order) => return orders::give(remote, order, Ordered::SetParameters).await,
        Command::Exclude { member, giving } => return orders::exclude(remote, member, giving).await,
        Command::Outcome { id, within, .. } => {
            let end = Instant::now() + std::time::Duration::from_secs((*within).into());
            return orders::follow(remote, id, None, end, json).await;
        }
        Command::Bundle(arguments) => return bundle::run(remote, arguments).await,
        Command::Alarms { acknowledge, acknowledge_all, service } => {
            return alarms::run(remote, service, acknowledge, *acknowledge_all).await;
        }
        Command::Checklist(arguments) => return checklist::run(remote, arguments).await,
        Command::Spacing(arguments) => return spacing::run(remote, arguments).await,
        Command::Mission(command) => return missions::run(remote, command).await,
        Command::Parameters(command) => return parameters::run(remote, command).await,
        Command::FlightSetup(command) => return flight_setups::run(remote, command).await,
        Command::Fence(command) => return regions::run(remote, regions::List::Fence, command).await,
        Command::Rally(command) => return regions::run(remote, regions::List::Rally, command).await,
        Command::Watch { events, .. } => return watch::run(remote, json, *events).await,
        #[cfg(unix)]
        Command::Live { listen, .. } => return live::run(remote, json, *listen).await,
        // Before there is a remote.
        Command::SignIn { .. } | Command::SignOut { .. } => {}
        Command::Session { .. } => show::answer(json, &remote.get::<Access>(paths::SESSION).await?, session)?,
        Command::Status { .. } => {
            show::answer(json, &remote.get::<FleetPicture>(paths::FLEET).await?, show::status)?;
        }
        Command::Aircraft { aircraft, .. } => {
            let id = orders::id_of(&remote.get(paths::FLEET).await?, aircraft)?;
            let known: FleetAircraft = remote.get(&format!("{}?vehicle={id}", paths::FLEET_AIRCRAFT)).await?;
            let text =
                if json { serde_json::to_string(&known) } else { serde_json::to_string_pretty(&known) };
            show::print(&format!("{}\n", text?))?;
        }
        Command::Commands { .. } => {
            let picture: FleetPicture = remote.get(paths::FLEET).await?;
            show::answer(json, &picture.commands, |commands| {
                commands.iter().map(|command| show::command(&picture, command)).collect()
            })?;
        }
        Command::Note { id, text, .. } => {
            let note = FleetCommandNote { id: id.clone(), note: text.clone() };
            remote.ask(Method::PUT, paths::FLEET_COMMAND_NOTE, Some(&note)).await?;
        }
        Command::Lease { .. } => {
            let picture: FleetPicture = remote.get(paths::FLEET).await?;
            let rows: Vec<Value> =
                picture.aircraft.iter().filter_map(|a| a.status.as_ref()).map(lease).collect();
            show::answer(json, &rows, |_| show::leases(&picture))?;
        }
        Command::TakeOver { targets, .. } => {
            let picture: FleetPicture = remote.get(paths::FLEET).await?;
            let take_over = FleetTakeOver { vehicles: targets.listed(&picture)? };
            let taken: FleetLeases =
                remote.ask(Method::POST, paths::FLEET_LEASES, Some(&take_over)).await?.json()?;
            show::answer(json, &taken, |taken| show::taken_over(&picture, taken))?;
            if taken.vehicles.iter().any(|vehicle| vehicle.problem.is_some()) {
                return Ok(Code::NotAll);
            }
        }
        Command::Links { .. } => show::answer(json, &remote.get(paths::FLEET_LINKS).await?, show::matrix)?,
        Command::LinkTest { end, record_of, .. } => {
            link_test(remote, *end, record_of.as_deref(), json).await?
        }
        Command::Formations { aircraft, distance_m, .. } => {
            let path = format!("{}?aircraft={aircraft}&distance_m={distance_m}", paths::FORMATIONS);
            let formations: Value = remote.get(&path).await?;
            show::print(&format!("{formations}\n"))?;
        }
        Command::Records { track: None, .. } => {
            show::answer(json, &remote.get(paths::RECORDS).await?, show::records)?;
        }
        Command::Records { track: Some(file), samples, .. } => {
            let file = show::escaped(file);
            let track: Value =
                remote.get(&format!("{}?file={file}&samples={samples}", paths::RECORDS_TRACK)).await?;
            show::print(&format!("{track}\n"))?;
        }
        Command::Audit { after, .. } => {
            let log = remote.get(&format!("{}?after={after}", paths::AUDIT)).await?;
            show::answer(json, &log, show::audit)?;
        }
        Command::Users { .. } => show::answer(json, &remote.get(paths::USERS).await?, show::users)?,
        Command::EndSessions { name, .. } => {
            wingbeat_ground::users::check_name(name)
                .map_err(|why| anyhow::anyhow!("the user's name: {why}"))?;
            remote.ask(Method::DELETE, &format!("{}?user={name}", paths::USER_SESSIONS), None::<&()>).await?;
        }
        Command::Api { method, path, body, .. } => {
            let answer =
                remote.ask(method_of(method)?, checked(path)?, content(body.as_ref())?.as_ref()).await?;
            show::print(&answer.text())?;
        }
    }
    Ok(Code::Done)
}

fn lease(status: &wingbeat_api::AircraftStatus) -> Value {
    json!({ "vehicle": status.id, "name": status.name, "lease": status.lease })
}

async fn link_test(remote: &Remote, end: bool, record_of: Option<&str>, json: bool) -> Result<()> {
    if let Some(receiver) = record_of {
        let is_id = wingbeat_wire::VehicleId::from_hexadecimal(receiver).is_some();
        anyhow::ensure!(is_id, "--record-of: found {receiver:?}, expected 16 hexadecimal digits");
        let path = format!("{}?receiver={receiver}", paths::FLEET_LINK_TEST_FILE);
        return show::print(&remote.ask(Method::GET, &path, None::<&()>).await?.text());
    }
    let method = if end { Method::DELETE } else { Method::GET };
    let test = remote.ask(method, paths::FLEET_LINK_TEST, None::<&()>).await?.json()?;
    show::answer(json, &test, show::link_test)
}

fn method_of(text: &str) -> Result<Method> {
    match text.to_ascii_uppercase().as_str() {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "DELETE" => Ok(Method::DELETE),
        _ => anyhow::bail!("method: found {text:?}, expected GET, POST, PUT or DELETE"),
    }
}

fn checked(path: &str) -> Result<&str> {
    anyhow::ensure!(
        path.starts_with('/'),
        "path: found {path:?}, expected one that begins with /, for example /api/v1/fleet"
    );
    Ok(path)
}

fn content(body: Option<&PathBuf>) -> Result<Option<Value>> {
    let Some(path) = body else { return Ok(None) };
    let read = || format!("--body {}", path.display());
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin()).with_context(read)?
    } else {
        std::fs::read_to_string(path).with_context(read)?
    };
    serde_json::from_str(&text).with_context(read).map(Some)
}

/// The text of a file that another program may have written in UTF-16 or Latin-1.
fn text_of(path: &std::path::Path) -> Result<String> {
    let bytes = std::fs::read(path)?;
    let text = wingbeat_missions::decode(&bytes).map_err(|line| {
        anyhow::anyhow!(
            "line {line}: found bytes that are no text, expected text in UTF-8, UTF-16 or Latin-1"
        )
    })?;
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each operation of the ground service's API, and the command that asks it. A new operation does not pass without one.
    const OPERATIONS: &[(&str, &str, &str)] = &[
        ("get", paths::FLEET, "status"),
        ("get", paths::FLEET_EVENTS, "watch"),
        ("get", paths::FLEET_AIRCRAFT, "aircraft"),
        ("post", paths::FLEET_COMMANDS, "hold"),
        ("put", paths::FLEET_COMMAND_NOTE, "note"),
        ("post", paths::FLEET_LEASES, "take-over"),
        ("put", paths::FLEET_MISSION, "mission send"),
        ("get", paths::FLEET_PARAMETERS, "parameters status"),
        ("post", paths::FLEET_PARAMETERS, "parameters read"),
        ("put", paths::FLEET_PARAMETERS, "parameters set"),
        ("post", paths::FLEET_PARAMETERS_COMPARISON, "parameters compare"),
        ("get", paths::FLEET_PARAMETERS_FILE, "parameters export"),
        ("get", paths::FLEET_FLIGHT_SETUP, "flight-setup show"),
        ("put", paths::FLEET_FLIGHT_SETUP, "flight-setup set"),
        ("get", paths::FLEET_BUNDLE, "bundle"),
        ("post", paths::FLEET_BUNDLE, "bundle"),
        ("get", paths::FLEET_ALARMS, "alarms"),
        ("post", paths::FLEET_ALARMS, "alarms"),
        ("get", paths::FLEET_CHECKLIST, "checklist"),
        ("put", paths::FLEET_CHECKLIST, "checklist tick"),
        ("delete", paths::FLEET_CHECKLIST, "checklist begin-anew"),
        ("get", paths::FLEET_CHECKLIST_RESULTS, "checklist results"),
        ("get", paths::FLEET_CHECKLIST_RESULT, "checklist export"),
        ("get", paths::FLEET_REGION, "fence status"),
        ("post", paths::FLEET_REGION, "rally read"),
        ("put", paths::FLEET_REGION, "fence send"),
        ("post", paths::REGION_FILES, "fence check"),
        ("get", paths::FLEET_LINKS, "links"),
        ("get", paths::FLEET_LINK_TEST, "link-test"),
        ("post", paths::FLEET_LINK_TEST, "/linktest run"),
        ("delete", paths::FLEET_LINK_TEST, "link-test"),
        ("get", paths::FLEET_LINK_TEST_FILE, "link-test"),
        ("post", paths::MISSION_FILES, "mission read"),
        ("post", paths::MISSION_EXPORT, "mission export"),
        ("post", paths::PLAN_PREVIEW, "mission preview"),
        ("post", paths::PLAN_FILE, "mission plan"),
        ("post", paths::SAVED_PLANS, "mission saved-plan"),
        ("get", paths::FORMATIONS, "formations"),
        ("get", paths::RECORDS, "records"),
        ("get", paths::RECORDS_TRACK, "records"),
        ("get", paths::RECORDS_PAGE, "records"),
        ("get", paths::SESSION, "session"),
        ("post", paths::SESSION, "sign-in"),
        ("delete", paths::SESSION, "sign-out"),
        ("get", paths::AUDIT, "audit"),
        ("get", paths::USERS, "users"),
        ("delete", paths::USER_SESSIONS, "end-sessions"),
    ];

    #[test]
    fn every_operation_of_the_api_has_its_command() {
        let document = serde_json::to_value(wingbeat_ground::openapi()).unwrap();
        let mut found = vec![];
        for (path, methods) in document["paths"].as_object().unwrap() {
            found.extend(methods.as_object().unwrap().keys().map(|method| (method.clone(), path.clone())));
        }
        found.sort();
        let mut listed: Vec<_> =
            OPERATIONS.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
        listed.sort();
        assert_eq!(found, listed);
        let program = <crate::Arguments as clap::CommandFactory>::command();
        for (_, _, name) in OPERATIONS {
            let words = match name.strip_prefix('/') {
                Some(name) => name.to_owned(),
                None => format!("fleet {name}"),
            };
            let mut command = &program;
            for word in words.split(' ') {
                command = command.find_subcommand(word).unwrap_or_else(|| panic!("{words}: no {word}"));
            }
        }
    }
}
