//! The begin of a connection: with TLS where this server has keys, without where it has none, and one clear answer
//! to a peer that expects the other.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use wingbeat_api::ApiError;
use wingbeat_tls::{Acceptor, FIRST_BYTE, Peer, Why, server::TlsStream};

use crate::handshakes::Handshakes;

/// As much of a request is read before it is answered that it must be made otherwise, bytes.
const DRAINED_MAX: usize = 64 * 1024;

/// Why a connection is not served, or a request of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barred {
    /// Without TLS, where this server has keys.
    NotTls,
    /// Without TLS, where this server has a certificate.
    NotHttps,
    /// With TLS, where this server has none.
    Tls,
    /// No TLS 1.3, or none with keys in place of certificates.
    TlsVersion,
    /// The peer's key is not in the roster.
    UnknownKey,
    /// The peer did not take our key.
    OwnKey,
    /// The handshake broke off, proved nothing, or took too long.
    Handshake,
    /// The address began too many handshakes that proved no key.
    Rate,
    /// What was asked is not for the peer's role.
    Role,
    /// Too many requests of one peer waited.
    Share,
    /// A connection was not accepted for want of file descriptors or memory.
    Shortage,
}

impl Barred {
    /// Every reason, in the order of the counts.
    const ALL: [Self; 11] = [
        Self::NotTls,
        Self::NotHttps,
        Self::Tls,
        Self::TlsVersion,
        Self::UnknownKey,
        Self::OwnKey,
        Self::Handshake,
        Self::Rate,
        Self::Role,
        Self::Share,
        Self::Shortage,
    ];

    /// The name in counts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NotTls => "not_tls",
            Self::NotHttps => "not_https",
            Self::Tls => "tls",
            Self::TlsVersion => "tls_version",
            Self::UnknownKey => "unknown_key",
            Self::OwnKey => "own_key",
            Self::Handshake => "handshake",
            Self::Rate => "handshake_rate",
            Self::Role => "role",
            Self::Share => "share",
            Self::Shortage => "shortage",
        }
    }

    /// What was found and what is expected.
    fn sentence(self) -> &'static str {
        match self {
            Self::NotTls => {
                "found HTTP without TLS, expected TLS 1.3 with a key of this fleet: this aircraft has keys \
                 (for the ground service: --keys FOLDER)"
            }
            Self::NotHttps => {
                "found HTTP without TLS, expected HTTPS: open the address with https:// in place of http://"
            }
            Self::Tls => {
                "found TLS, expected HTTP without: no keys are configured here (security.insecure = true); start the \
                 ground service without --keys, or give the aircraft its keys"
            }
            Self::TlsVersion => {
                "found no common way to speak TLS, expected TLS 1.3 with raw public keys (RFC 7250)"
            }
            Self::UnknownKey => {
                "found a key that the roster does not have, expected that of an enrolled sender"
            }
            Self::OwnKey => {
                "found our key refused, expected a peer whose roster has it as this aircraft's (are the rosters of the \
                 same epoch?)"
            }
            Self::Handshake => "found no whole TLS handshake, expected one that proves a key",
            Self::Rate => {
                "found more TLS handshakes without a key of this fleet than one address may begin, expected at most 64 at \
                 once and ten a second"
            }
            Self::Role => "found a request that is not for the role of its sender",
            Self::Share => "found more requests of one sender waiting than its share",
            Self::Shortage => {
                "found no file descriptor or memory for a connection, expected some (LimitNOFILE): the oldest gives way"
            }
        }
    }
}

impl From<Why> for Barred {
    fn from(why: Why) -> Self {
        match why {
            Why::NotTls => Self::NotTls,
            Why::Incompatible => Self::TlsVersion,
            Why::UnknownKey => Self::UnknownKey,
            Why::RefusedOurs => Self::OwnKey,
            Why::Broken => Self::Handshake,
        }
    }
}

/// How often what was refused, by reason. A clone counts on.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<[AtomicU64; Barred::ALL.len()]>);

impl Refusals {
    /// Counts one. The log has the first, the second, the fourth and so on: a flood does not fill it.
    pub fn count(&self, barred: Barred, from: &dyn std::fmt::Display) {
        let count = self.0[barred as usize].fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!("HTTP server: {} ({from}; {} {count})", barred.sentence(), barred.name());
        }
    }

    /// The counts by the names of their reasons.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Barred::ALL
            .into_iter()
            .zip(self.0.iter())
            .map(|(why, count)| (why.name(), count.load(Ordering::Relaxed)))
    }
}

/// A connection on which HTTP may begin.
pub(crate) enum Opened {
    Plain(TcpStream),
    Secured(Box<TlsStream<TcpStream>>, Option<Peer>),
}

/// Shakes hands where there are keys; `Err` is why the connection is not served, and nothing where its peer hung up.
pub(crate) async fn open(
    mut stream: TcpStream,
    tls: Option<&Acceptor>,
    handshakes: &Handshakes,
    peer_address: IpAddr,
) -> Result<Opened, Option<Barred>> {
    let mut first = [0];
    if !matches!(stream.peek(&mut first).await, Ok(1)) {
        return Err(None);
    }
    match (tls, first == [FIRST_BYTE]) {
        (None, false) => Ok(Opened::Plain(stream)),
        (Some(_), true) if !handshakes.begin(peer_address, Instant::now()) => Err(Some(Barred::Rate)),
        (Some(tls), true) => match tls.accept(stream).await {
            Ok((stream, peer)) => {
                if peer.is_some() {
                    handshakes.proved(peer_address);
                }
                Ok(Opened::Secured(Box::new(stream), peer))
            }
            Err(error) => Err(Some(wingbeat_tls::why(&error).map_or(Barred::Handshake, Barred::from))),
        },
        (tls, _) => {
            let barred = match tls {
                Some(tls) if tls.is_of_fleet() => Barred::NotTls,
                Some(_) => Barred::NotHttps,
                None => Barred::Tls,
            };
            // Whether it is received or not, there is nothing more to do.
            let _ = answer_in_the_clear(&mut stream, barred).await;
            Err(Some(barred))
        }
    }
}

/// One sentence without TLS: a client of HTTP shows it, and one of TLS recognizes that it is none.
async fn answer_in_the_clear(stream: &mut TcpStream, barred: Barred) -> io::Result<()> {
    let mut buffer = [0; 4096];
    // What was sent is taken first: a connection that is closed with bytes unread loses the answer.
    let _ = stream.read(&mut buffer).await?;
    let error = ApiError { code: barred.name().to_owned(), message: barred.sentence().to_owned() };
    let body = serde_json::to_string(&error)?;
    let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close";
    stream.write_all(format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    stream.shutdown().await?;
    let mut left = DRAINED_MAX;
    while left > 0 {
        match stream.read(&mut buffer).await? {
            0 => break,
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_under_its_own_name() {
        let refusals = Refusals::default();
        for (times, barred) in Barred::ALL.into_iter().enumerate() {
            for _ in 0..times {
                refusals.clone().count(barred, &"a test");
            }
        }
        let counts: Vec<_> = refusals.counts().collect();
        let expected: Vec<_> = Barred::ALL.into_iter().map(Barred::name).zip(0..).collect();
        assert_eq!(counts, expected);
    }
}
