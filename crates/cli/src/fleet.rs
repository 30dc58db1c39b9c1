//! `wingbeat fleet`: the keys of a fleet, whose authority is a folder of the operator's computer; its other commands are a console's.

use std::{
    io::{IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Subcommand;
use wingbeat_ground::{certificate, push_keys};
use wingbeat_keys::{
    Bundle, REQUEST_LEN_MAX, Request, Store, Timestamp,
    enrolment::{self, Change, DAYS},
    file::{Refused, read_text},
};
use wingbeat_wire::{Role, VehicleId};

/// What is done with the fleet through its ground service, or with its keys.
#[derive(Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Operate(Box<crate::console::Command>),
    /// Make the authority of a new fleet, and its bundle without members.
    Init {
        /// The folder; it should be on an encrypted disk that is not the aircraft's.
        folder: PathBuf,
        /// How long each bundle holds from the day on which it is made, days.
        #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(u16).range(1..))]
        days: u16,
    },
    /// Add the aircraft or console that has made a request (wingbeatd enrol --request, wingbeat fleet request).
    Enrol {
        /// The fleet's folder.
        folder: PathBuf,
        /// The request's file.
        request: PathBuf,
        /// What it may sign: aircraft (everything but orders), operator (every order), safety (hold, return, land, recover control), viewer
        /// (nothing).
        #[arg(long, value_name = "ROLE", default_value = "aircraft", value_parser = role)]
        role: Role,
        /// The code that the aircraft showed; without it the code is shown, and asked about.
        #[arg(long)]
        code: Option<String>,
    },
    /// Make and enrol a console on this computer: its folder is what `wingbeat ground --keys` is given.
    Console {
        /// The fleet's folder.
        folder: PathBuf,
        /// The console's id: 16 hexadecimal digits that no other has.
        #[arg(value_parser = vehicle)]
        id: VehicleId,
        /// The console's folder.
        console: PathBuf,
        /// What it may sign: operator, safety or viewer.
        #[arg(long, value_name = "ROLE", default_value = "operator", value_parser = role)]
        role: Role,
    },
    /// Make a certificate for the page of a console, which browsers take once they trust the fleet's pages.crt: page.crt and page.key in
    /// the console's folder. It holds for 397 days; make another before.
    Certificate {
        /// The fleet's folder.
        folder: PathBuf,
        /// The console's folder: what `wingbeat ground --keys` is given.
        console: PathBuf,
        /// A name or an IP address by which the page is opened; may be repeated. Without it this computer's names, localhost and
        /// 127.0.0.1.
        #[arg(long = "name", value_name = "NAME")]
        names: Vec<String>,
    },
    /// On a console's computer: make its key and a request for `wingbeat fleet enrol`.
    Request {
        /// The console's folder.
        console: PathBuf,
        /// The console's id: 16 hexadecimal digits that no other has.
        #[arg(value_parser = vehicle)]
        id: VehicleId,
    },
    /// On a console's computer: take the fleet's bundle.
    Accept {
        /// The console's folder.
        console: PathBuf,
        /// The fleet's bundle.
        bundle: PathBuf,
    },
    /// Begin the next epoch, without aircraft and consoles that are lost: a new fleet key for the others.
    Renew {
        /// The fleet's folder.
        folder: PathBuf,
        /// Ids of those that are left out.
        #[arg(long, num_args = 1.., value_parser = vehicle)]
        without: Vec<VehicleId>,
    },
    /// List the members, and when the bundle expires.
    Show {
        /// The fleet's folder.
        folder: PathBuf,
    },
    /// Hand the bundle to aircraft on the ground, over the network. Exit code 1 if an aircraft of the fleet did not take it.
    Push {
        /// The fleet's folder.
        folder: PathBuf,
        /// Addresses of the aircraft's APIs, HOST:PORT.
        #[arg(required = true)]
        aircraft: Vec<String>,
        /// The folder of a console that the aircraft know, as for `wingbeat ground`: its key is that of the connection.
        #[arg(long, value_name = "DIR")]
        keys: PathBuf,
    },
}

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Operate(command) => return crate::console::run(command),
        Command::Init { folder, days } => {
            let bundle = enrolment::init(folder, Timestamp::now(), *days)?;
            println!(
                "{}: a fleet without members, {}; next: wingbeat fleet enrol",
                folder.display(),
                bundle.terms()
            );
            certificate::init(folder)?;
        }
        Command::Certificate { folder, console, names } => {
            // A fleet that was made by an older version has no authority for pages yet.
            enrolment::read(folder)?;
            certificate::init(folder)?;
            let names = if names.is_empty() { own_names() } else { names.clone() };
            certificate::issue(folder, console, &names)?;
            println!(
                "{}: a certificate for {}; browsers take it once they trust {}",
                console.join(certificate::PAGE_CERTIFICATE).display(),
                names.join(", "),
                folder.join(certificate::AUTHORITY_CERTIFICATE).display()
            );
        }
        Command::Enrol { folder, request, role, code } => {
            let request = read_request(request)?;
            compare(&request, code.as_deref())?;
            let bundle = enrol(folder, request, *role)?;
            hand_out(folder, &bundle);
        }
        Command::Console { folder, id, console, role } => {
            if *role == Role::Aircraft {
                bail!(
                    "--role: found aircraft, expected operator, safety or viewer: an aircraft makes its own key (wingbeatd enrol)"
                );
            }
            let request = Store::of_console(*id, console).request().map_err(|error| plain(&error))?;
            let bundle = enrol(folder, request.clone(), *role)?;
            let taken = Store::of_console(*id, console).accept(bundle.text());
            taken.with_context(|| format!("{}: not taken", console.display()))?;
            println!("{}: {} {id}", console.display(), role.name());
            hand_out(folder, &bundle);
        }
        Command::Request { console, id } => {
            let request = Store::of_console(*id, console).request().map_err(|error| plain(&error))?;
            std::io::stdout().write_all(request.text().as_bytes()).context("writing the request")?;
            eprintln!("request of {id}, code {}", request.code());
        }
        Command::Accept { console, bundle } => {
            let expected = "the bundle of a fleet (wingbeat fleet)";
            let text =
                read_text(bundle, wingbeat_keys::BUNDLE_LEN_MAX, expected).map_err(|error| plain(&error))?;
            let keys = wingbeat_keys::accept_console(console, &text).map_err(|error| plain(&error))?;
            println!("{}: {} {}", console.display(), keys.role.name(), keys.id);
        }
        Command::Renew { folder, without } => {
            let change = Change::Renew { without: without.clone() };
            let bundle = enrolment::change(folder, &change, Timestamp::now())?;
            hand_out(folder, &bundle);
        }
        Command::Show { folder } => {
            let bundle = enrolment::read(folder)?;
            println!("{}", bundle.terms());
            for member in bundle.members() {
                println!("{} {}", member.id, member.role.name());
            }
        }
        Command::Push { folder, aircraft, keys } => return push(folder, aircraft, keys),
    }
    Ok(ExitCode::SUCCESS)
}

/// By which this computer's page is opened.
fn own_names() -> Vec<String> {
    let mut names = wingbeat_ground::machine_names();
    names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    names
}

fn enrol(folder: &Path, request: Request, role: Role) -> Result<Bundle> {
    Ok(enrolment::change(folder, &Change::Enrol { request, role }, Timestamp::now())?)
}

fn hand_out(folder: &Path, bundle: &Bundle) {
    let file = folder.join("fleet.bundle");
    println!(
        "{}: {} members, {}; hand it to every one of them: wingbeat fleet push to aircraft on the network, or copy it, then \
         wingbeatd enrol --accept on the aircraft, wingbeat fleet accept on a console",
        file.display(),
        bundle.members().len(),
        bundle.terms()
    );
}

fn read_request(path: &Path) -> Result<Request> {
    let expected = "a request (wingbeatd enrol --request)";
    let text = read_text(path, REQUEST_LEN_MAX, expected).map_err(|error| plain(&error))?;
    Request::parse(&text).map_err(|found| anyhow!("{}: found {found}, expected {expected}", path.display()))
}

fn plain(Refused { found, expected }: &Refused) -> anyhow::Error {
    anyhow!("found {found}, expected {expected}")
}

/// What arrived is what the aircraft made only if their codes are the same.
fn compare(request: &Request, code: Option<&str>) -> Result<()> {
    let id = request.id();
    if let Some(code) = code {
        if request.has_code(code) {
            return Ok(());
        }
        bail!(
            "--code: found {code:?}, expected the code of this request of {id}: another key, or a mistyped digit; nothing is changed"
        );
    }
    if !std::io::stdin().is_terminal() {
        bail!("--code: found none and no terminal to ask at, expected the code that {id} showed");
    }
    print!("request of {id}, code {}\nDoes {id} show the same code? Type yes: ", request.code());
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if answer.trim() != "yes" {
        bail!("found {:?}, expected yes; nothing is changed", answer.trim());
    }
    Ok(())
}

/// A line for each address, and one for those of the fleet that did not take the bundle.
fn push(folder: &Path, aircraft: &[String], keys: &Path) -> Result<ExitCode> {
    let keys = wingbeat_keys::read_console(keys)
        .map_err(|refused| anyhow!("--keys: found {}, expected {}", refused.found, refused.expected))?;
    let bundle = enrolment::read(folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let receipts = runtime.block_on(push_keys(aircraft, bundle.text(), &keys))?;
    let mut taken = Vec::new();
    for receipt in receipts {
        let name = receipt.aircraft.as_deref().unwrap_or("no aircraft");
        match receipt.result {
            Ok(keys) => {
                println!(
                    "{} {name}: holds epoch {}, serial {}, until {}",
                    receipt.address, keys.epoch, keys.serial, keys.expires
                );
                taken.extend(receipt.aircraft);
            }
            Err(why) => println!("{} {name}: not taken: {why}", receipt.address),
        }
    }
    let of_fleet = bundle.members().iter().filter(|member| member.role == Role::Aircraft);
    let missing: Vec<String> =
        of_fleet.map(|member| member.id.to_string()).filter(|id| !taken.contains(id)).collect();
    if missing.is_empty() {
        println!("every aircraft of the fleet holds {}", bundle.terms());
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} aircraft of the fleet did not take it: {}", missing.len(), missing.join(", "));
    Ok(ExitCode::from(1))
}

fn role(name: &str) -> Result<Role, String> {
    Role::from_name(name).ok_or_else(|| {
        let names = Role::ALL.map(Role::name).join(", ");
        format!("found {name:?}, expected one of {names}")
    })
}

fn vehicle(id: &str) -> Result<VehicleId, String> {
    VehicleId::from_hexadecimal(id).ok_or_else(|| format!("found {id:?}, expected 16 hexadecimal digits"))
}
