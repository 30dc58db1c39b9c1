//! A plan flown on several computers (docs/lockstep.md): the first has the world, and each flies a part of the aircraft. HELICS is
//! between them, and nothing of it on a computer alone.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use wingbeat_cosim::hosts::{Answering, Exchange, Federation, Identity, VERSION, arithmetic, serve};
pub use wingbeat_helics::Join;
use wingbeat_helics::{Member, Root};

use crate::lockstep::{SILENCE, start};
use crate::plan::Plan;
use crate::run::Jobs;
use crate::scenario::Scenario;

/// HELICS' own brokers listen from 23404 on.
pub const PORT: u16 = 23500;
/// So many computers at most. The message of each stretch takes a few milliseconds for each.
pub const COMPUTERS_MOST: usize = 16;

/// The computers of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// How many, 2 to 16; aircraft are dealt out in turn.
    pub count: usize,
    /// Where the first one listens for the others (TCP).
    #[serde(default = "default_port")]
    pub port: u16,
}

fn default_port() -> u16 {
    PORT
}

impl Hosts {
    /// What cannot be is refused.
    ///
    /// # Errors
    /// Names what was found and what was expected.
    pub fn check(&self) -> Result<()> {
        let Self { count, port } = self;
        ensure!(
            (2..=COMPUTERS_MOST).contains(count),
            "hosts.count: found {count}, expected 2 to {COMPUTERS_MOST}"
        );
        ensure!(*port > 0, "hosts.port: found 0, expected a port");
        Ok(())
    }
}

impl std::str::FromStr for Hosts {
    type Err = anyhow::Error;

    /// `N` or `N:PORT`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || format!("found '{text}', expected a number of computers, or N:PORT");
        let (count, port) = match text.split_once(':') {
            Some((count, port)) => (count, port.parse().with_context(wrong)?),
            None => (text, PORT),
        };
        let hosts = Self { count: count.parse().with_context(wrong)?, port };
        hosts.check().map(|()| hosts)
    }
}

/// The first computer's end.
struct First(Root);

impl Exchange for First {
    fn exchange(&mut self, messages: Vec<(usize, Vec<u8>)>) -> Result<Vec<(usize, Vec<u8>)>> {
        Ok(self.0.exchange(messages)?)
    }
}

/// Another's end.
struct Another(Member);

impl Answering for Another {
    fn next(&mut self) -> Result<Vec<u8>> {
        Ok(self.0.next()?)
    }

    fn answer(&mut self, bytes: Vec<u8>) -> Result<()> {
        Ok(self.0.answer(bytes)?)
    }
}

/// HELICS says that a port is taken in other words, and after half a minute.
fn expect_free(name: &str, port: u16) -> Result<()> {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, port));
    listener.map(drop).with_context(|| format!("{name}: found {port}, expected a port that is free"))
}

/// Waits for the others, and gives them to all flights.
///
/// # Errors
/// The flights cannot be divided, there is no HELICS, or a computer is not there or flies otherwise.
pub(crate) fn open(hosts: Hosts, jobs: &mut Jobs) -> Result<()> {
    hosts.check()?;
    let identity = identity(jobs, hosts.count)?;
    expect_free("hosts.port", hosts.port)?;
    eprintln!("waiting at port {} for {} other computers", hosts.port, hosts.count - 1);
    let root = Root::listen(hosts.port, hosts.count, SILENCE).context("hosts")?;
    eprintln!("all {} computers are there, HELICS {}", hosts.count, root.version());
    let federation = Federation::open(Box::new(First(root)), hosts.count, &identity).context("hosts")?;
    for (scenario, _) in &mut jobs.all {
        scenario.hosts = Some(federation.clone());
    }
    Ok(())
}

/// Flies a part of the aircraft for the computer that is joined, until that has no further flight; how many flights it were.
///
/// # Errors
/// As [`open`].
pub fn join(plan: &Plan, folder: &Path, seed: u64, join: Join) -> Result<u64> {
    let count = plan
        .hosts
        .context("hosts: found none, expected how many computers fly (--hosts N, or [hosts] in the plan)")?
        .count;
    let number = join.number;
    ensure!((2..=count).contains(&number), "--number: found {number}, expected 2 to {count}");
    if let Some((port, _)) = join.passes_on {
        expect_free("--pass-on", port)?;
    }
    let jobs = Jobs::of(plan, folder, seed)?;
    let identity = identity(&jobs, count)?;
    let member = Member::join(join, SILENCE).context("hosts")?;
    let start = |hash, seed| {
        let mut all = jobs.all.iter();
        let found = all.find(|(scenario, own)| *own == seed && flight_hash(scenario, seed) == hash);
        let (scenario, _) = found.context("found no such flight in its plan, expected the same plan")?;
        let ours = (0..scenario.aircraft()).filter(|index| index % count + 1 == number);
        let mut start = start(scenario, seed)?;
        ours.map(|index| Ok((index, start(index)?))).collect()
    };
    serve(number, &mut Another(member), &identity, start)
}

fn identity(jobs: &Jobs, computers: usize) -> Result<Identity> {
    let mut plan = blake3::Hasher::new();
    let mut program = 0;
    for (scenario, seed) in &jobs.all {
        plan.update(&flight_hash(scenario, *seed).to_le_bytes());
        if let Some(path) = &scenario.arducopter {
            let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
            program = first(&blake3::hash(&bytes));
        }
    }
    let version = VERSION.to_owned();
    Ok(Identity { version, plan: first(&plan.finalize()), arithmetic: arithmetic(), program, computers })
}

/// Of a flight, wherever the files of its computer are.
pub(crate) fn flight_hash(scenario: &Scenario, seed: u64) -> u64 {
    let mut same = Scenario { hosts: None, ..scenario.clone() };
    same.arducopter = same.arducopter.map(|_| "arducopter".into());
    same.scripts.iter_mut().for_each(|script| script.path = "script".into());
    first(&blake3::hash(format!("{same:?} {seed}").as_bytes()))
}

fn first(hash: &blake3::Hash) -> u64 {
    hash.as_bytes().first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}
