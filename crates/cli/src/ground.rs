//! `wingbeat ground`: the PC Companion, and its users.

use std::io::{IsTerminal as _, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Args, Subcommand};
use wingbeat_api::UserRole;
use wingbeat_ground::certificate::{PAGE_CERTIFICATE, PAGE_KEY};
use wingbeat_ground::checklist::{Configured, List};
use wingbeat_ground::{
    Bundles, Config, ConsoleConfig, Ground, Hosts, Listening, PageCertificate, Protection, tiles, users,
};
use wingbeat_link::Endpoint;
use wingbeat_radio::{Clock, UdpBroadcast, UdpConfig};
use wingbeat_wire::Role;

/// Arguments of `wingbeat ground`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Addresses of the aircraft's APIs, HOST:PORT.
    #[arg(required_unless_present_any = ["find", "listen_radio", "records"])]
    aircraft: Vec<String>,
    /// Find aircraft by multicast DNS (_wingbeat._tcp) too. One that is announced is asked who it is, and with --keys it has to prove that.
    #[arg(long)]
    find: bool,
    /// Find aircraft by the datagrams that they broadcast too: network interface, broadcast address and UDP port of their `[radio]`, as
    /// for --radio. The sender is asked who it is at the address of its datagram; with --keys its datagram and its answer have to prove
    /// that. Nothing is sent there.
    #[arg(long, value_name = "IF/ADDRESS:PORT", value_parser = radio)]
    listen_radio: Option<UdpConfig>,
    /// The port of the aircraft's APIs (http.bind), at which those are asked that --listen-radio receives.
    #[arg(long, value_name = "PORT", default_value_t = 8080, requires = "listen_radio", value_parser = clap::value_parser!(u16).range(1..))]
    api_port: u16,
    /// Where the console is served.
    #[arg(long, default_value = "127.0.0.1:8700")]
    bind: SocketAddr,
    /// Let --bind be an address that other computers reach although there are no users, or no TLS: whatever reaches it commands
    /// with this console's keys, or reads passwords on their way.
    #[arg(long)]
    unprotected: bool,
    /// The users who may sign in (`wingbeat ground users add`). Without it whatever reaches the service commands.
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// How long a session lasts from signing in, hours.
    #[arg(long, value_name = "HOURS", default_value_t = 12, requires = "users", value_parser = clap::value_parser!(u16).range(1..=168))]
    session: u16,
    /// Where it is noted who did what, as JSON lines; audit.jsonl beside the users' file unless it is given. Without either it is
    /// kept until the service ends.
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Serve the page by TLS with this certificate, in PEM, those that signed it after it. Unless it is given, page.crt and page.key in
    /// the folder of --keys (`wingbeat fleet certificate`) are taken where --bind is reached by other computers.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The secret key of --tls-cert, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A name under which the console is opened, besides IP addresses, localhost and this computer's own name;
    /// may be repeated. Requests under another name are refused.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// The folder of this console's keys: console.key and fleet.bundle, as `wingbeat fleet console` makes them.
    /// With it aircraft are reached by TLS alone; without it only those without keys are reached.
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
    /// Repeat emergency commands by radio too: network interface, broadcast address and UDP port of the aircraft, as in their
    /// `[radio]`, for example wlan0/192.168.1.255:14600 or wlan0/[ff12::5742]:14600.
    #[arg(long, value_name = "IF/ADDRESS:PORT", requires = "keys", value_parser = radio)]
    radio: Option<UdpConfig>,
    /// Broadcast the corrections (RTCM 3) of a base station to the aircraft's satellite receivers: tcp:HOST:PORT or
    /// serial:DEVICE:BAUD. The key must be an operator's.
    #[arg(long, value_name = "SOURCE", requires = "radio", value_parser = rtcm)]
    rtcm: Option<Endpoint>,
    /// The built page.
    #[arg(long, value_name = "DIR")]
    web: Option<PathBuf>,
    /// A map of the ground for the page, as a PMTiles archive or MBTiles, of pictures or of vectors in the Protomaps schema. Without
    /// it the page draws a graticule.
    #[arg(long, value_name = "FILE", requires = "web", value_parser = map)]
    tiles: Option<PathBuf>,
    /// The folder into which bundles of the fleet's logs are collected, DIR/EXPERIMENT/UTC; without it that of --records, or
    /// wingbeat/bundles among the user's data (XDG_DATA_HOME).
    #[arg(long, value_name = "DIR")]
    bundles: Option<PathBuf>,
    #[command(flatten)]
    checklist: Checklist,
    /// Folder with the lab's profile of parameters, fleet.param, and NAME.param or ID.param of single aircraft, with which the
    /// aircraft's parameters are compared
    #[arg(long, value_name = "FOLDER")]
    parameters: Option<PathBuf>,
    /// A directory with recorded flights (docs/records.md), which the page replays.
    #[arg(long, value_name = "DIR")]
    records: Option<PathBuf>,
}

/// The lab's checklist.
#[derive(Args, Clone)]
pub(crate) struct Checklist {
    /// A checklist (TOML, docs/operating.md): operators tick its items on the page, and Setup and Start are refused while required
    /// ones are not ticked.
    #[arg(long, value_name = "FILE")]
    checklist: Option<PathBuf>,
    /// Where its ticks and, with each flight, its results are kept; checklists beside the log of who did what (--audit, --users), else in
    /// the folder of bundles.
    #[arg(long, value_name = "DIR", requires = "checklist")]
    checklist_results: Option<PathBuf>,
}

impl Checklist {
    /// The list, with the folder for its results: without one of its own `checklists` beside the audit log, else in `other`.
    pub(crate) fn read(&self, audit: Option<&Path>, other: Option<&Path>) -> Result<Option<Configured>> {
        let Some(file) = &self.checklist else { return Ok(None) };
        let list = List::read(file).context("--checklist")?;
        let beside = audit.map(|audit| audit.with_file_name("checklists"));
        let folder = self.checklist_results.clone().or(beside).or_else(|| Some(other?.join("checklists")));
        let folder = folder.context(
            "--checklist: found no folder for its results, expected --checklist-results DIR, or --users",
        )?;
        Ok(Some(Configured { list, folder }))
    }
}

/// What else `wingbeat ground` does.
#[derive(Subcommand)]
enum Command {
    /// The users who may sign in to the page: add, change, remove, list. A running service takes a change within a second.
    Users {
        #[command(subcommand)]
        command: UsersCommand,
    },
}

/// What is done with the users.
#[derive(Subcommand)]
enum UsersCommand {
    /// Add a user. The password is asked for, or read from standard input: at least 10 characters.
    Add {
        /// The name: lower-case letters, digits, dot, hyphen, underscore.
        #[arg(value_parser = name)]
        name: String,
        /// What the user may do: observer (see), operator (command), administrator (end others' sessions).
        #[arg(long, value_name = "ROLE")]
        role: UserRole,
        #[command(flatten)]
        file: UsersFile,
    },
    /// Give a user another password. Its sessions end.
    Password {
        /// The name.
        #[arg(value_parser = name)]
        name: String,
        #[command(flatten)]
        file: UsersFile,
    },
    /// Give a user another role.
    Role {
        /// The name.
        #[arg(value_parser = name)]
        name: String,
        /// observer, operator or administrator.
        role: UserRole,
        #[command(flatten)]
        file: UsersFile,
    },
    /// Take a user out. Its sessions end.
    Remove {
        /// The name.
        #[arg(value_parser = name)]
        name: String,
        #[command(flatten)]
        file: UsersFile,
    },
    /// List the users with their roles.
    List {
        #[command(flatten)]
        file: UsersFile,
    },
}

/// Where the users are.
#[derive(Args)]
struct UsersFile {
    /// The users' file, as `wingbeat ground --users` is given it.
    #[arg(long = "users", value_name = "FILE", default_value = "users.toml")]
    path: PathBuf,
}

fn name(text: &str) -> Result<String, String> {
    users::check_name(text).map(|()| text.to_owned())
}

fn run_users(command: &UsersCommand) -> Result<ExitCode> {
    let there = |all: &users::Entries, name: &String| match all.contains_key(name) {
        true => Ok(()),
        false => Err(format!("no user {name}")),
    };
    match command {
        UsersCommand::Add { name, role, file } => {
            let entry = users::Entry::new(*role, &password(name)?).map_err(|error| anyhow!(error))?;
            users::change(&file.path, |all| match all.contains_key(name) {
                true => Err(format!("a user {name} already")),
                false => {
                    all.insert(name.clone(), entry);
                    Ok(())
                }
            })?;
            println!("{}: {name}, {}", file.path.display(), role.name());
        }
        UsersCommand::Password { name, file } => {
            let password = password(name)?;
            users::change(&file.path, |all| {
                there(all, name)?;
                let role = all.get(name).map_or(UserRole::Observer, |entry| entry.role);
                all.insert(name.clone(), users::Entry::new(role, &password)?);
                Ok(())
            })?;
            println!("{}: {name} has another password", file.path.display());
        }
        UsersCommand::Role { name, role, file } => {
            users::change(&file.path, |all| {
                there(all, name)?;
                all.entry(name.clone()).and_modify(|entry| entry.role = *role);
                Ok(())
            })?;
            println!("{}: {name}, {}", file.path.display(), role.name());
        }
        UsersCommand::Remove { name, file } => {
            users::change(&file.path, |all| {
                there(all, name)?;
                all.remove(name);
                Ok(())
            })?;
            println!("{}: without {name}", file.path.display());
        }
        UsersCommand::List { file } => {
            for (name, entry) in users::read(&file.path)? {
                println!("{name} {}", entry.role.name());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Asked for twice at a terminal, where it is not shown; else the first line of standard input.
fn password(name: &str) -> Result<String> {
    if std::io::stdin().is_terminal() {
        let first = rpassword::prompt_password(format!("Password of {name}: ")).context("password")?;
        let again = rpassword::prompt_password("Again: ").context("password")?;
        if first != again {
            bail!("password: found two that differ, expected the same twice; nothing is changed");
        }
        return Ok(first);
    }
    let mut text = String::new();
    let most = u64::try_from(users::PASSWORD_MAX + 2).unwrap_or(u64::MAX);
    std::io::stdin().take(most).read_to_string(&mut text).context("password: reading standard input")?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// A map of the ground that the page can open.
pub(crate) fn map(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    tiles::check(&path).map(|()| path)
}

/// The console's keys. Its counters are kept beside them.
fn console(folder: &Path, rtcm: Option<Endpoint>) -> Result<ConsoleConfig> {
    let keys = wingbeat_keys::read_console(folder)
        .map_err(|refused| anyhow!("--keys: found {}, expected {}", refused.found, refused.expected))?;
    if rtcm.is_some() && keys.role != Role::Operator {
        bail!("--rtcm: found the key of a console of role {}, expected an operator's", keys.role.name());
    }
    Ok(ConsoleConfig { keys, clock: Clock::real_time(), state: Some(folder.to_owned()), rtcm })
}

/// Where a base station's frames come from: what an autopilot's bytes do, but for what is listened on.
fn rtcm(text: &str) -> Result<Endpoint, String> {
    const EXPECTED: &str =
        "tcp:HOST:PORT or serial:DEVICE:BAUD, for example tcp:10.0.0.2:2101 or serial:/dev/ttyACM0:115200";
    match text.parse() {
        Ok(source @ (Endpoint::TcpClient { .. } | Endpoint::Serial { .. })) => Ok(source),
        Ok(Endpoint::UdpListen(_) | Endpoint::UdpSend(_)) => Err(format!("found UDP, expected {EXPECTED}")),
        Err(error) => Err(format!("found {}, expected {EXPECTED}", error.problem)),
    }
}

fn radio(text: &str) -> Result<UdpConfig, String> {
    let parsed = text.split_once('/').and_then(|(interface, address)| {
        let (address, port) = address.rsplit_once(':')?;
        let address = address.trim_start_matches('[').trim_end_matches(']');
        let interface = (!interface.is_empty()).then(|| interface.to_owned());
        Some(UdpConfig { interface, port: port.parse().ok()?, destination: address.parse().ok()? })
    });
    parsed.ok_or_else(|| {
        format!("found {text:?}, expected INTERFACE/ADDRESS:PORT, for example wlan0/192.168.1.255:14600")
    })
}

/// Among the user's data; none where the user has no folder for it.
fn own_bundles() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = var("XDG_DATA_HOME").or_else(|| Some(var("HOME")?.join(".local/share")));
    data.filter(|folder| folder.is_absolute()).map(|folder| folder.join("wingbeat/bundles"))
}

/// Serves until Ctrl-C.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(Command::Users { command }) = &arguments.command {
        return run_users(command);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let end = crate::end_signal()?;
        let bundles = arguments.bundles.clone().or_else(|| arguments.records.clone()).or_else(own_bundles);
        let mut protection = protection(arguments)?;
        protection.checklist = arguments.checklist.read(protection.audit.as_deref(), bundles.as_deref())?;
        let scheme = if protection.tls.is_some() { "https" } else { "http" };
        let without = missing(arguments, &protection);
        let hosts = Hosts::new("--allow-host", &arguments.allow_host).context("--allow-host")?;
        let config = Config {
            bind: arguments.bind,
            aircraft: arguments.aircraft.clone(),
            web_dir: arguments.web.clone(),
            tiles: arguments.tiles.clone(),
            parameters: arguments.parameters.clone(),
            records: arguments.records.clone(),
            hosts,
            console: arguments
                .keys
                .as_deref()
                .map(|folder| console(folder, arguments.rtcm.clone()))
                .transpose()?,
            protection,
        };
        let radio = arguments.radio.clone().map(UdpBroadcast::spawn);
        let mut ground = Ground::start_with(config, radio).await?;
        if let Some(folder) = bundles {
            ground.keep_bundles(Bundles { folder, read_clock: crate::console::READ_CLOCK });
        }
        if arguments.find {
            ground
                .find()
                .map_err(|why| anyhow!("--find: found {why}, expected a socket for multicast DNS"))?;
        }
        if let Some(radio) = &arguments.listen_radio {
            let name = format!("{}:{}", radio.interface.as_deref().unwrap_or("any interface"), radio.port);
            let listening = Listening { radio: name, api_port: arguments.api_port };
            ground.listen(listening, UdpBroadcast::spawn(radio.clone()));
        }
        println!("PC Companion: {scheme}://{}", ground.address());
        if let Some(without) = without {
            println!("--unprotected: this address is served {without}");
        }
        end.await;
        ground.stop().await;
        Ok(ExitCode::SUCCESS)
    });
    // Whatever a thread still reads: a service manager waits for the end.
    runtime.shutdown_timeout(Duration::from_secs(2));
    served
}

/// With these users, and the log of what they do beside their file.
pub(crate) fn of_users(users: Option<&Path>) -> Protection {
    let audit = users.map(|users| users.with_file_name("audit.jsonl"));
    Protection { users: users.map(Path::to_owned), audit, ..Protection::default() }
}

/// Who may use the service; refused where others reach it and it is not protected.
fn protection(arguments: &Arguments) -> Result<Protection> {
    let is_reached = !arguments.bind.ip().is_loopback();
    let given = arguments.tls_cert.clone().zip(arguments.tls_key.clone());
    let made = arguments.keys.as_ref().map(|keys| (keys.join(PAGE_CERTIFICATE), keys.join(PAGE_KEY)));
    let made = made.filter(|(certificate, key)| is_reached && certificate.exists() && key.exists());
    let tls = given.or(made).map(|(certificate, key)| PageCertificate { certificate, key });
    let mut protection = of_users(arguments.users.as_deref());
    protection.session = Duration::from_secs(3600 * u64::from(arguments.session));
    protection.audit = arguments.audit.clone().or(protection.audit);
    protection.tls = tls;
    match missing(arguments, &protection) {
        Some(without) if !arguments.unprotected => bail!(
            "--bind: found {}, which other computers reach, {without}, expected --users FILE (wingbeat ground users add) and a \
             certificate (--tls-cert and --tls-key, or wingbeat fleet certificate), an address of this computer alone, for \
             example 127.0.0.1:8700, or --unprotected",
            arguments.bind
        ),
        _ => Ok(protection),
    }
}

/// What keeps others off is not there, where others reach the service.
fn missing(arguments: &Arguments, protection: &Protection) -> Option<&'static str> {
    if arguments.bind.ip().is_loopback() {
        return None;
    }
    match (&protection.users, &protection.tls) {
        (Some(_), Some(_)) => None,
        (None, _) => Some("without users: whatever reaches it commands the aircraft"),
        (Some(_), None) => Some("without TLS: passwords and sessions are read on their way"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_station_is_on_tcp_or_on_a_serial_line() {
        for good in ["tcp:10.0.0.2:2101", "tcp:base.local:2101", "serial:/dev/ttyACM0:115200"] {
            assert_eq!(rtcm(good).unwrap().to_string(), good);
        }
        for (bad, what) in [
            ("udp:0.0.0.0:2101", "found UDP, expected tcp:HOST:PORT or serial:DEVICE:BAUD"),
            ("ntrip://caster:2101/MOUNT", "found \"ntrip\" is not a scheme, expected tcp:HOST:PORT"),
            ("tcp:10.0.0.2", "found no port, expected"),
            ("serial:ttyACM0:115200", "found \"ttyACM0\" is not the absolute path of a device, expected"),
            ("", "found no scheme, expected"),
        ] {
            let message = rtcm(bad).unwrap_err();
            assert!(message.starts_with(what), "{message}");
        }
    }
}
