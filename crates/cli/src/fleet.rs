//! `wingbeat fleet`: the keys of a fleet, in a folder of the operator's computer.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Subcommand;
use wingbeat_keys::enrolment;
use wingbeat_wire::{Role, VehicleId};

/// What is done with the keys.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make the folder of a new fleet: its key, and a roster without aircraft.
    Init {
        /// The folder; it should be on an encrypted disk that is not the aircraft's.
        folder: PathBuf,
    },
    /// Add aircraft or consoles: make the secret of each, and put their public keys into the roster.
    Enrol {
        /// The fleet's folder.
        folder: PathBuf,
        /// What these keys may sign: aircraft, operator (every order), safety (hold, return, land, recover control), viewer
        /// (nothing).
        #[arg(long, value_name = "ROLE", default_value = "aircraft", value_parser = role)]
        role: Role,
        /// Ids, 16 hexadecimal digits each: of an aircraft the MAC address of the radio, unless the key `id` is set; of a console
        /// any that no other has.
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Begin the next epoch, without aircraft and consoles that are lost: a new fleet key, and a roster that no longer has them.
    Renew {
        /// The fleet's folder.
        folder: PathBuf,
        /// Ids of those that are left out.
        #[arg(long)]
        without: Vec<String>,
    },
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Init { folder } => {
            enrolment::init(folder)?;
            println!("{}: a fleet without aircraft; next: wingbeat fleet enrol", folder.display());
        }
        Command::Enrol { folder, role, ids } => {
            for id in vehicles(ids)? {
                let secret = enrolment::enrol(folder, id, *role)?;
                let to = match role {
                    Role::Aircraft => "this aircraft",
                    Role::Operator | Role::Safety | Role::Viewer => "this console, as console.key",
                };
                println!("{id}: copy {} to {to}", secret.display());
            }
            println!(
                "copy fleet.key and roster.toml to every aircraft and console, and restart each daemon on the ground"
            );
        }
        Command::Renew { folder, without } => {
            let epoch = enrolment::renew(folder, &vehicles(without)?)?;
            println!(
                "epoch {epoch}: copy fleet.key and roster.toml to every aircraft and console, and restart each daemon on the ground"
            );
        }
    }
    Ok(())
}

fn role(name: &str) -> Result<Role, String> {
    Role::from_name(name).ok_or_else(|| {
        let names = Role::ALL.map(Role::name).join(", ");
        format!("found {name:?}, expected one of {names}")
    })
}

fn vehicles(ids: &[String]) -> Result<Vec<VehicleId>> {
    let parse = |id: &String| {
        VehicleId::from_hexadecimal(id)
            .with_context(|| format!("id: found {id:?}, expected 16 hexadecimal digits"))
    };
    ids.iter().map(parse).collect()
}
