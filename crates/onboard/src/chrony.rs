//! GNSS time for `chronyd`, which sets this computer's clock: samples for its reference clock `SOCK`.
//!
//! The daemon has no right to set a clock, and offers what it measured; where the socket is not there, nothing is offered
//! ([decision 13](../../../docs/decisions/0013-clock.md)). A sample is the `struct sock_sample` of chrony's
//! `refclock_sock.c`, in the byte order and with the `time_t` of this machine.

use std::{
    io::{self, ErrorKind},
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::Instant as KernelInstant;
use wingbeat_agent::Severity;

/// From one sample to the next: chrony filters them.
const PERIOD: Duration = Duration::from_secs(1);
/// A time that is known less well is no sample.
const ERROR_MAX_US: u64 = 100_000;
/// A clock that is farther off is set in one step. Not in flight.
const STEP_US: u64 = 1_000_000;
/// What chrony knows its samples by, `SOCK`.
const MAGIC: i32 = 0x534f_434b;

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// When it was taken by this computer's clock, microseconds after 1970.
    pub(crate) unix_us: u64,
    /// How far this computer's clock is ahead of GNSS time, microseconds.
    pub(crate) ahead_us: i64,
    /// How well that is known, microseconds.
    pub(crate) error_us: u64,
}

impl Sample {
    fn bytes(self) -> Vec<u8> {
        let (s, us) = ((self.unix_us / 1_000_000) as i64, (self.unix_us % 1_000_000) as i64);
        let mut bytes = Vec::with_capacity(40);
        // struct timeval: two longs.
        if cfg!(target_pointer_width = "64") {
            bytes.extend([s.to_ne_bytes(), us.to_ne_bytes()].concat());
        } else {
            bytes.extend([(s as i32).to_ne_bytes(), (us as i32).to_ne_bytes()].concat());
        }
        // True time less this computer's, seconds.
        bytes.extend((self.ahead_us as f64 * -1e-6).to_ne_bytes());
        // No pulse, no leap second, padding.
        bytes.extend([0_i32, 0, 0, MAGIC].map(i32::to_ne_bytes).concat());
        bytes
    }
}

/// The way to chronyd.
#[derive(Debug)]
pub(crate) struct Chrony {
    path: PathBuf,
    socket: UnixDatagram,
    due: KernelInstant,
    /// What became of the last sample; nothing before the first.
    last: Option<Result<(), ErrorKind>>,
}

impl Chrony {
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { path: path.to_owned(), socket, due: KernelInstant::now(), last: None })
    }

    /// Whether it takes samples.
    pub(crate) fn is_fed(&self) -> bool {
        self.last == Some(Ok(()))
    }

    /// Whether it is time for another sample.
    pub(crate) fn is_due(&self, now: KernelInstant) -> bool {
        now >= self.due
    }

    /// Offers a sample; a line for the log where that begins, or cannot be done any more.
    pub(crate) fn offer(
        &mut self,
        now: KernelInstant,
        sample: Sample,
        is_armed: bool,
    ) -> Option<(Severity, String)> {
        self.due = now + PERIOD;
        let Sample { ahead_us, error_us, .. } = sample;
        if error_us > ERROR_MAX_US || is_armed && ahead_us.unsigned_abs() > STEP_US {
            return None;
        }
        let sent = self.socket.send_to(&sample.bytes(), &self.path);
        let result = sent.as_ref().map(|_| ()).map_err(io::Error::kind);
        if self.last.replace(result) == Some(result) {
            return None;
        }
        let path = self.path.display();
        let refused = |error: io::Error| match error.kind() {
            // No chronyd, or one that is not set up: ordinary.
            ErrorKind::NotFound => None,
            _ => Some((
                Severity::Warning,
                format!(
                    "clock.chrony_socket: found {path}: {error}, expected chronyd's socket, writable for this user (docs/operating.md, Clock)"
                ),
            )),
        };
        match sent {
            Ok(_) => Some((Severity::Info, format!("GNSS time is given to chronyd ({path})"))),
            Err(error) => refused(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Sample = Sample { unix_us: 1_795_435_200_250_000, ahead_us: -1_500_000, error_us: 800 };

    #[cfg(all(target_pointer_width = "64", target_endian = "little"))]
    #[test]
    fn a_sample_has_the_layout_of_chrony() {
        let mut expected = vec![];
        expected.extend(1_795_435_200_i64.to_le_bytes());
        expected.extend(250_000_i64.to_le_bytes());
        expected.extend(1.5_f64.to_le_bytes());
        expected.extend([0; 12]);
        expected.extend(*b"KCOS");
        assert_eq!(SAMPLE.bytes(), expected);
    }

    #[tokio::test]
    async fn samples_are_offered_where_the_socket_is_and_no_step_in_flight() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chrony.sock");
        let mut chrony = Chrony::new(&path).unwrap();
        let now = KernelInstant::now();
        assert!(chrony.is_due(now));
        assert_eq!(chrony.offer(now, SAMPLE, false), None, "no chronyd is ordinary");
        assert!(!chrony.is_fed() && !chrony.is_due(now));

        let server = UnixDatagram::bind(&path).unwrap();
        server.set_nonblocking(true).unwrap();
        let (severity, line) = chrony.offer(now, SAMPLE, false).unwrap();
        assert!(severity == Severity::Info && line.contains("chrony.sock"), "{line}");
        let mut buffer = [0; 64];
        let length = server.recv(&mut buffer).unwrap();
        assert!(chrony.is_fed() && buffer[..length] == SAMPLE.bytes());

        assert_eq!(chrony.offer(now, SAMPLE, false), None, "once in the log");
        server.recv(&mut buffer).unwrap();
        for (sample, is_armed) in [(SAMPLE, true), (Sample { error_us: ERROR_MAX_US + 1, ..SAMPLE }, false)] {
            assert_eq!(chrony.offer(now, sample, is_armed), None);
            assert_eq!(server.recv(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        }
        chrony.offer(now, Sample { ahead_us: 20_000, ..SAMPLE }, true);
        server.recv(&mut buffer).unwrap();

        drop(server);
        let (severity, line) = chrony.offer(now, SAMPLE, false).unwrap();
        assert!(severity == Severity::Warning && line.starts_with("clock.chrony_socket: found "), "{line}");
        assert!(!chrony.is_fed());
    }
}
