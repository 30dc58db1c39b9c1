//! A Python script as an aircraft's [`Logic`]: it runs unchanged, in the world's virtual time.
//!
//! `script.py`, which is part of this program, runs it: it replaces what a script waits and reads clocks with, and hands the turn to us
//! whenever all threads of the script wait. So script and world take turns, and neither depends on how fast the other is. A
//! turn, and how it crosses the socket between the two, is described there.
#![allow(clippy::disallowed_methods, reason = "another program is waited for, and may fall silent")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant as Wall};

use anyhow::{Context, Result, anyhow, bail, ensure};
use wingbeat_geo::Instant;
use wingbeat_sim::logic::{Heard, Logic, Sent};

use crate::process::{CONSOLE, Process, last_lines};

/// What runs a script.
const RUNNER: &str = include_str!("script.py");
/// The socket between the two, in the directory of the process.
const SOCKET: &str = "bench.sock";
/// How often it is checked whether a program that is waited for has ended.
const POLL_PERIOD: Duration = Duration::from_millis(5);
/// More than a script can send in one turn.
const SENT_BYTES_MOST: usize = 16 << 20;
/// Lines of what it printed that are kept.
const PRINTED_LINES_MOST: usize = 200;

/// What a script is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its file.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// `HOST:PORT`, where it finds its autopilot by TCP. Nothing is served there: the connection does not leave the process.
    pub address: String,
    /// The UDP port of its radio, where it has one.
    pub radio: Option<u16>,
    /// What its `random` draws from.
    pub seed: u64,
    /// A script that keeps its turn for so long, by the wall clock, has failed.
    pub silence: Duration,
}

/// A script that runs.
#[derive(Debug)]
pub struct Script {
    /// For messages.
    name: String,
    socket: UnixStream,
    /// When it is due again, unless its autopilot has sent something.
    until: Instant,
    has_ended: bool,
    silence: Duration,
    /// The last field: the socket closes before the process is killed.
    process: Process,
}

impl Script {
    /// Starts it: it runs as far as the interpreter.
    ///
    /// # Errors
    /// There is no such file or no Python.
    pub fn start(config: &Config) -> Result<Self> {
        let name = format!("script {}", config.path.display());
        let path = config
            .path
            .canonicalize()
            .with_context(|| format!("{name}: expected the file of a Python script"))?;
        // Sets are in one order in every run, and clocks show the same on every computer.
        let environment = ["PYTHONHASHSEED=0", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "TZ=UTC"];
        let fixed = ["env"].into_iter().chain(environment).chain(["python3", "script.py"]);
        let mut command: Vec<String> = fixed.map(str::to_owned).collect();
        let radio = config.radio.unwrap_or_default().to_string();
        command.extend([config.seed.to_string(), config.address.clone(), radio, path.display().to_string()]);
        command.extend(config.arguments.iter().cloned());
        let process = Process::start(&command, &[("script.py", RUNNER.as_bytes())])?;
        let listener = UnixListener::bind(process.directory().join(SOCKET)).context("a socket")?;
        let socket = connected(&listener, &process, config.silence).with_context(|| name.clone())?;
        socket.set_read_timeout(Some(config.silence))?;
        socket.set_write_timeout(Some(config.silence))?;
        let silence = config.silence;
        Ok(Self { name, socket, until: Instant::ZERO, has_ended: false, silence, process })
    }

    fn turn(&mut self, now: Instant, received: &[u8], heard: &[Heard], out: &mut Sent) -> Result<()> {
        let mut request = now.as_micros().to_le_bytes().to_vec();
        request.extend((received.len() as u32).to_le_bytes());
        request.extend(received);
        request.extend((heard.len() as u32).to_le_bytes());
        for (from, datagram) in heard {
            request.extend((*from as u16).to_le_bytes());
            request.extend((datagram.len() as u16).to_le_bytes());
            request.extend(&**datagram);
        }
        let mut head = [0; 13];
        let answered = self.socket.write_all(&request).and_then(|()| self.socket.read_exact(&mut head));
        answered.map_err(|error| self.silent(now, &error))?;
        let [until @ .., is_over, a, b, c, d] = head;
        let (until, length) = (u64::from_le_bytes(until), u32::from_le_bytes([a, b, c, d]) as usize);
        ensure!(
            length <= SENT_BYTES_MOST,
            "found {length} bytes in one turn, expected {SENT_BYTES_MOST} at most"
        );
        let before = out.autopilot.len();
        out.autopilot.resize(before + length, 0);
        let mut count = [0; 4];
        let read = self.socket.read_exact(&mut out.autopilot[before..]);
        read.and_then(|()| self.socket.read_exact(&mut count)).map_err(|error| self.silent(now, &error))?;
        for _ in 0..u32::from_le_bytes(count) {
            let mut length = [0; 2];
            self.socket.read_exact(&mut length).map_err(|error| self.silent(now, &error))?;
            let mut datagram = vec![0; u16::from_le_bytes(length).into()];
            self.socket.read_exact(&mut datagram).map_err(|error| self.silent(now, &error))?;
            out.datagrams.push(datagram.into());
        }
        if is_over == 0 {
            self.until = Instant::from_micros(until);
            return Ok(());
        }
        let at_s = now.as_secs_f64();
        ensure!(
            until == 0,
            "ended with exit code {until} after {at_s:.2} s of the flight, its last lines: {}",
            last_lines(self.process.directory())
        );
        self.has_ended = true;
        Ok(())
    }

    /// Why its turn does not end.
    fn silent(&self, now: Instant, error: &std::io::Error) -> anyhow::Error {
        let at_s = now.as_secs_f64();
        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) {
            return anyhow!(
                "it has kept its turn for {:.0} s of the wall clock after {at_s:.2} s of the flight: it hangs, or waits for what is not in \
                 virtual time; its last lines: {}",
                self.silence.as_secs_f64(),
                last_lines(self.process.directory())
            );
        }
        let began = Wall::now();
        while began.elapsed() < self.silence {
            if let Some(how) = self.process.ended() {
                return anyhow!("ended after {at_s:.2} s of the flight: {how}");
            }
            std::thread::sleep(POLL_PERIOD);
        }
        anyhow!("after {at_s:.2} s of the flight: {error}")
    }
}

/// Waits until the runner has come.
fn connected(listener: &UnixListener, process: &Process, silence: Duration) -> Result<UnixStream> {
    listener.set_nonblocking(true)?;
    let began = Wall::now();
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(false)?;
                return Ok(socket);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("a socket"),
        }
        if let Some(how) = process.ended() {
            bail!("it does not start: {how}");
        }
        ensure!(
            began.elapsed() < silence,
            "it does not start within {:.0} s of the wall clock",
            silence.as_secs_f64()
        );
        std::thread::sleep(POLL_PERIOD);
    }
}

impl Logic for Script {
    fn run(&mut self, now: Instant, received: &[u8], heard: &[Heard], out: &mut Sent) -> Result<(), String> {
        if self.has_ended || (received.is_empty() && heard.is_empty() && now < self.until) {
            return Ok(());
        }
        self.turn(now, received, heard, out).map_err(|error| format!("{}: {error:#}", self.name))
    }

    fn due(&self) -> Instant {
        if self.has_ended { Instant::NEVER } else { self.until }
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn printed(&self) -> Vec<String> {
        let console = std::fs::read(self.process.directory().join(CONSOLE)).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        console.lines().take(PRINTED_LINES_MOST).map(str::to_owned).collect()
    }
}
