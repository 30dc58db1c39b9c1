//! A console with keys, which signs what it asks of a daemon over HTTP.

use std::{
    num::NonZeroU32,
    time::{Duration, SystemTime},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use wingbeat_api::paths;
use wingbeat_console::{Console, Press};
use wingbeat_onboard::{Clock, Handle};
use wingbeat_sim::keys::{CONSOLE, Keys};
use wingbeat_tls::Identity;
use wingbeat_wire::{Addressees, Command, CommandId};

/// Longer than an answer takes on a loaded machine: what misses it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Operator {
    keys: Keys,
    clock: Clock,
    console: Console,
}

impl Operator {
    pub(crate) fn new(keys: Keys, clock: Clock) -> Self {
        Self { keys, clock, console: Console::new(CONSOLE, 1_795_435_200_000_000) }
    }

    /// Begins a session, as a console's program does when it starts.
    pub(crate) fn begin_session(&mut self) {
        let utc = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        self.console.begin_session(NonZeroU32::MIN, utc.as_micros() as u64);
    }

    /// An order for any aircraft, signed now.
    pub(crate) fn sealed(&mut self, id: &str, command: Command) -> Vec<u8> {
        let press = Press { id: CommandId::try_from(id).unwrap(), command, flight: 0 };
        let mut draft = self.console.draft(self.clock.now(), &press, Addressees::All);
        self.keys.console().seal(&mut draft).to_vec()
    }

    /// Orders over HTTP; the code and the body.
    pub(crate) async fn order(
        &mut self,
        to: &Handle,
        token: &str,
        id: &str,
        command: Command,
    ) -> (u16, String) {
        let sealed = self.sealed(id, command);
        self.send(to, "POST", paths::ORDERS, token, "application/octet-stream", &sealed).await
    }

    /// A request with the token of a lease, by TLS with the console's key; the code and the body.
    pub(crate) async fn send(
        &self,
        to: &Handle,
        method: &str,
        path: &str,
        token: &str,
        kind: &str,
        body: &[u8],
    ) -> (u16, String) {
        let identity = Identity::new(self.keys.console(), self.keys.roster()).unwrap();
        send(&identity, to, (method, path), token, kind, body).await
    }

    /// The same of JSON, without a lease.
    pub(crate) async fn ask(&self, to: &Handle, method: &str, path: &str, body: &str) -> (u16, String) {
        self.send(to, method, path, "", "application/json", body.as_bytes()).await
    }
}

/// A request with the token of a lease, by TLS with this key; the code and the body.
pub(crate) async fn send(
    identity: &Identity,
    to: &Handle,
    (method, path): (&str, &str),
    token: &str,
    kind: &str,
    body: &[u8],
) -> (u16, String) {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\n{}: {token}\r\n\
             Content-Length: {}\r\n\r\n",
        paths::LEASE_HEADER,
        body.len()
    );
    let exchange = async {
        let mut stream = identity.connect(TcpStream::connect(to.address()).await?).await?;
        stream.write_all(&[head.as_bytes(), body].concat()).await?;
        let mut answer = vec![];
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = timeout(PATIENCE, exchange).await.expect("an answer in time").expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (code.unwrap_or_else(|| panic!("no HTTP: {answer:?}")), body.into())
}
