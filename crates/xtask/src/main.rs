//! `cargo xtask`: the repository's own commands. It depends on none of our crates, so that it builds in
//! seconds and while they do not compile; a command that needs one runs a program of that crate.
#![allow(clippy::disallowed_methods, reason = "commands are timed")]
#![forbid(unsafe_code)]

mod aircraft;
mod assignment;
mod bench;
mod chip;
mod cosim;
mod counts;
mod cross;
mod demo;
mod dist;
mod frames;
mod golden;
mod image;
mod layers;
mod network;
mod ns3;
mod nspawn;
mod openapi;
mod package;
mod packages;
mod pi;
mod process;
mod record;
mod sky;
mod suite;
mod web;
mod windows;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The repository's own commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything that must pass; the last line is `N passed, M failed`
    Test {
        /// Also the tests that need SITL, network namespaces or QEMU
        #[arg(long)]
        full: bool,
    },
    /// Build what is needed and fly a simulated fleet with the PC Companion on http://127.0.0.1:8700
    Demo {
        /// Passed on to `wingbeat bench fleet`: --auto, --headless, --speed N, --uavs N, --mission FILE,
        /// --formation NAME, --channel NAME
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measure the figures of docs/performance.md and write them there, with this machine's name
    Bench {
        /// One part only
        part: Option<Part>,
        /// What the streams of `frames` and the missions of `sky` are made from
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Of `cosim`: a program wingbeat that is built already
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
        /// Already in a network namespace made for it
        #[arg(long, hide = true)]
        inside: bool,
    },
    /// Fly what is reproducible and compare its traces with tests/golden/traces.toml
    Golden {
        /// Also the flights that take minutes
        #[arg(long)]
        full: bool,
        /// Write the traces instead: behaviour is meant to change
        #[arg(long)]
        write: bool,
        /// A program wingbeat that is built already; default: the release build
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
    },
    /// Check which crate may depend on which, and that the pure crates declare their purity
    Layers,
    /// Check that the pure crates compile without the standard library
    Chip {
        /// Take the host's check even where the chip's target is installed
        #[arg(long)]
        host: bool,
    },
    /// Build the programs for Debian on another machine under target/cross, and check them
    Cross {
        /// What to build for
        #[arg(long, value_enum, default_value = "aarch64")]
        target: cross::Target,
        /// Take Debian's compiler, also where rustup's server has the target's standard library
        #[arg(long)]
        debian: bool,
    },
    /// Compile `wingbeat` for 64-bit Windows under target/windows, without linking it
    Windows,
    /// Run the tests of the bytes that all machines share under qemu-user, built for another machine
    Vectors {
        /// What to build for
        #[arg(long, value_enum, default_value = "aarch64")]
        target: cross::Target,
    },
    /// Build the Debian packages, archives, lists of software and checksums under target/packages
    Dist {
        /// What to build for; may be repeated. Default: all
        #[arg(long, value_enum)]
        target: Vec<cross::Target>,
    },
    /// Build the aircraft's package for this PC, install, start, upgrade, remove and purge it in a bare system; needs root
    Package,
    /// Boot a Debian with the daemon under systemd and a simulated flight controller on its serial line,
    /// and fly it; needs root, systemd-nspawn and mmdebstrap
    Nspawn {
        /// Already in a network namespace made for it
        #[arg(long, hide = true)]
        inside: bool,
    },
    /// Try deploy/image/wingbeat-image on images that are made here; needs root and loop devices
    Image,
    /// Boot five simulated radios in a guest and join them to a network by deploy/network/wingbeat-network; needs
    /// qemu-system-x86_64 and mmdebstrap
    Network,
    /// Boot a Debian for the Raspberry Pi in QEMU with the aircraft's package and a simulated flight controller on its
    /// serial line, fly it, and cut its power; needs root, qemu-system-aarch64 and mmdebstrap
    Pi {
        /// A package for arm64 that is built already
        #[arg(long, value_name = "DEB")]
        package: Option<PathBuf>,
        /// No machine: the programs alone, under qemu-user, with a flight controller over TCP, as `cargo xtask test` does
        #[arg(long)]
        programs: bool,
    },
    /// Run our ns-3 program at every operating point and write tests/ns3/broadcast.csv; half an hour
    Ns3 {
        /// Build only the program that is a plan's medium (docs/lockstep.md), as target/ns3/wingbeat-ns3
        #[arg(value_parser = ["program"])]
        program: Option<String>,
    },
    /// Run the doors that take bytes from outside on mutations of their corpora, and print executions per second
    Fuzz {
        /// Passed on: TARGET or all, --seconds N each, --seed N, --input FILE
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Write the OpenAPI documents under docs/openapi
    Openapi {
        /// Write nothing; fail where a committed document differs
        #[arg(long)]
        check: bool,
    },
}

/// A part of the figures that is measured for itself.
#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// MAVLink frame readers side by side: ours, the mavlink crate's, pymavlink's
    Frames,
    /// A hundred aircraft through MBCAP-e for 64 minutes, and what a hundred neighbours cost one
    Sky,
    /// What flight logs cost.
    Record,
    /// Giving 500 aircraft their slots
    Assignment,
    /// Receptions per second of the 802.11 medium, next to ns-3
    Medium,
    /// Real ArduCopters (WINGBEAT_SITL, WINGBEAT_SITL_4) with ns-3 in lock step: speed, phases, the coupling, the published methods
    Cosim,
    /// Start, memory, size and instructions of the daemon as it is installed; needs root
    Aircraft,
}

fn main() -> ExitCode {
    let root = root();
    let outcome = match Arguments::parse().command {
        Command::Test { full } => return suite::run(&root, full),
        Command::Demo { arguments } => demo::run(&root, &arguments),
        Command::Bench { part: None, seed, .. } => {
            let sky = || sky::run(&root, seed).and_then(|()| assignment::run(&root, seed));
            bench::run(&root).and_then(|()| sky()).and_then(|()| ns3::compare(&root))
        }
        Command::Bench { part: Some(Part::Frames), seed, .. } => frames::run(&root, seed),
        Command::Bench { part: Some(Part::Sky), seed, .. } => sky::run(&root, seed),
        Command::Bench { part: Some(Part::Assignment), seed, .. } => assignment::run(&root, seed),
        Command::Bench { part: Some(Part::Aircraft), inside: false, .. } => aircraft::run(&root),
        Command::Bench { part: Some(Part::Aircraft), inside: true, .. } => aircraft::run_inside(&root),
        Command::Bench { part: Some(Part::Record), .. } => record::run(&root),
        Command::Bench { part: Some(Part::Medium), .. } => ns3::compare(&root),
        Command::Bench { part: Some(Part::Cosim), seed, program, .. } => {
            cosim::run(&root, seed, program.as_deref())
        }
        Command::Golden { full, write, program } => program
            .map_or_else(|| process::build_wingbeat(&root), Ok)
            .and_then(|program| golden::run(&root, &program, full, write))
            .map(|line| println!("{line}")),
        Command::Layers => layers::run(&root).map(|line| println!("{line}")),
        Command::Chip { host } => chip::run(&root, host).map(|line| println!("{line}")),
        Command::Cross { target, debian: false } => cross::run(&root, target).map(drop),
        Command::Cross { target, debian: true } => cross::run_by_debian(&root, target).map(drop),
        Command::Windows => match windows::missing() {
            Some(what) => {
                println!("windows: skipped: {what}");
                Ok(())
            }
            None => windows::run(&root),
        },
        Command::Vectors { target } => cross::vectors(&root, target),
        Command::Dist { target } => match target.as_slice() {
            [] => dist::run(&root, cross::Target::value_variants()),
            some => dist::run(&root, some),
        },
        Command::Nspawn { inside: true } => nspawn::run_inside(&root),
        Command::Nspawn { inside: false } => nspawn::missing().and_then(|missing| match missing {
            Some(what) => {
                println!("nspawn: skipped: {what}");
                Ok(())
            }
            None => nspawn::run(&root).map(|()| println!("nspawn: passed")),
        }),
        Command::Package => package::missing().and_then(|missing| match missing {
            Some(what) => {
                println!("package: skipped: {what}");
                Ok(())
            }
            None => package::run(&root, &process::build_wingbeat_dev(&root)?).map(|line| println!("{line}")),
        }),
        Command::Image => image::missing().and_then(|missing| match missing {
            Some(what) => {
                println!("image: skipped: {what}");
                Ok(())
            }
            None => image::run(&root).map(|()| println!("image: passed")),
        }),
        // With the checks of the profile for development: an overflow is found that a release would not show.
        Command::Fuzz { arguments } => process::run(
            process::cargo()
                .current_dir(&root)
                .args(["run", "--quiet", "--package", "wingbeat-fuzz-targets", "--"])
                .args(arguments),
        ),
        Command::Network => match network::missing() {
            Some(what) => {
                println!("network: skipped: {what}");
                Ok(())
            }
            None => network::run(&root),
        },
        Command::Pi { package, programs } => {
            let package = package.as_deref();
            let missing = if programs { Ok(pi::emulated::missing(package)) } else { pi::missing(package) };
            missing.and_then(|missing| match missing {
                Some(what) => {
                    println!("pi: skipped: {what}");
                    Ok(())
                }
                None => pi::run(&root, package, programs).map(|()| println!("pi: passed")),
            })
        }
        Command::Ns3 { program } => match (ns3::missing(), program) {
            (Some(what), _) => {
                println!("ns3: skipped: {what}");
                Ok(())
            }
            (None, Some(_)) => ns3::program(&root).map(|path| println!("{}", path.display())),
            (None, None) => ns3::run(&root),
        },
        Command::Openapi { check } => openapi::run(&root, check),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The top of the repository: two above this crate.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}
