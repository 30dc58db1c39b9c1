//! A simulated flight controller in real time over TCP, as ArduPilot's SITL serves SERIAL0: one client per port at
//! a time, others wait in the queue of the socket until it leaves. The flight continues whether or not a client is
//! connected.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};
use wingbeat_radio::Clock;
use wingbeat_sim::flight_controller::FlightController;

/// A client that takes nothing for so long is dropped: it would hold up the flight.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// A shortage of the system (file descriptors) is waited out for this time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Where a flight controller is served.
#[derive(Debug)]
pub struct Port {
    listener: TcpListener,
    /// Whether the line is plugged in.
    online: Option<watch::Receiver<bool>>,
}

impl From<TcpListener> for Port {
    fn from(listener: TcpListener) -> Self {
        Self { listener, online: None }
    }
}

impl Port {
    /// A port whose line can be pulled: while `online` is false its client is dropped and none is accepted.
    pub fn with_line(listener: TcpListener, online: watch::Receiver<bool>) -> Self {
        Self { listener, online: Some(online) }
    }

    fn is_online(&self) -> bool {
        self.online.as_ref().is_none_or(|online| *online.borrow())
    }
}

/// Its satellites show this machine's time.
#[allow(clippy::disallowed_methods, reason = "it is served in real time")]
pub fn follow_utc(fc: &mut FlightController, clock: Clock) {
    let unix_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
    fc.set_utc_us(clock.now(), unix_us);
}

/// Serves `fc` until the future is dropped; `watch` is called after every tick.
///
/// # Errors
/// The listener itself broke. A client's errors only end that client.
pub async fn flight_controller(
    port: impl Into<Port>,
    mut fc: FlightController,
    clock: Clock,
    mut watch: impl FnMut(&mut FlightController),
) -> io::Result<()> {
    follow_utc(&mut fc, clock);
    let mut port = port.into();
    let mut client: Option<TcpStream> = None;
    let mut out = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let accepts = client.is_none() && port.is_online();
        tokio::select! {
            () = sleep_until(clock.kernel(fc.poll_timeout())) => {
                out.clear();
                fc.advance(clock.now(), &mut out);
                watch(&mut fc);
                if let Some(stream) = &mut client
                    && !out.is_empty()
                    && !matches!(timeout(WRITE_TIMEOUT, stream.write_all(&out)).await, Ok(Ok(())))
                {
                    client = None;
                }
            }
            accepted = port.listener.accept(), if accepts => match accepted {
                Ok((stream, _)) => {
                    // Small frames leave without delay; without it they come late, not wrong.
                    let _ = stream.set_nodelay(true);
                    client = Some(stream);
                }
                Err(error) if is_passing(&error) => tokio::time::sleep(ACCEPT_PAUSE).await,
                Err(error) => return Err(error),
            },
            read = read(&mut client, &mut buffer), if client.is_some() => match read {
                Ok(n) if n > 0 => fc.receive(&buffer[..n]),
                _ => client = None,
            },
            () = changed(&mut port.online) => if !port.is_online() {
                client = None;
            },
        }
    }
}

/// Whether an error of `accept` concerns one connection or one moment, and not the listener.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    // EMFILE and ENFILE have no kind of their own.
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | WouldBlock)
        || matches!(error.raw_os_error(), Some(23 | 24))
}

async fn read(client: &mut Option<TcpStream>, buffer: &mut [u8]) -> io::Result<usize> {
    match client {
        Some(stream) => stream.read(buffer).await,
        None => std::future::pending().await,
    }
}

/// The next change of the line. One whose owner is gone stays as it is.
async fn changed(online: &mut Option<watch::Receiver<bool>>) {
    if let Some(online) = online
        && online.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_geo::{Instant, Position};
    use wingbeat_sim::flight_controller::Config;

    async fn served() -> (std::net::SocketAddr, tokio::task::JoinHandle<io::Result<()>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clock = Clock::start(20.0).unwrap();
        (address, tokio::spawn(flight_controller(listener, controller(), clock, |_| {})))
    }

    fn controller() -> FlightController {
        let home = Position::from_degrees(39.48, -0.34, 10.0).unwrap();
        FlightController::new(Config::new(7, home), 1, Instant::ZERO)
    }

    /// Whether a heartbeat of system 7 comes within the test's patience.
    async fn heartbeat(stream: &mut TcpStream) -> bool {
        let mut decoder = wingbeat_autopilot::codec::Decoder::default();
        let mut seen = false;
        let mut buffer = [0; 512];
        while !seen {
            let Ok(Ok(n)) = timeout(Duration::from_secs(20), stream.read(&mut buffer)).await else {
                return false;
            };
            if n == 0 {
                return false;
            }
            decoder.push(&buffer[..n], |frame| seen |= frame.header.system_id == 7);
        }
        true
    }

    #[tokio::test]
    async fn one_client_after_the_other_is_served() {
        let (address, server) = served().await;
        let mut first = TcpStream::connect(address).await.unwrap();
        assert!(heartbeat(&mut first).await);
        // The second is connected, and receives nothing while the first is there.
        let mut second = TcpStream::connect(address).await.unwrap();
        let mut buffer = [0; 16];
        let early = timeout(Duration::from_millis(300), second.read(&mut buffer)).await;
        assert!(early.is_err(), "two simultaneous clients");
        drop(first);
        assert!(heartbeat(&mut second).await);
        server.abort();
    }

    #[tokio::test]
    async fn rubbish_from_a_client_does_not_end_the_flight() {
        let (address, server) = served().await;
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(&[0xfd, 0x00, 0x31, 0x77, 0xfe, 0x12].repeat(2000)).await.unwrap();
        assert!(heartbeat(&mut client).await);
        assert!(!server.is_finished());
        server.abort();
    }

    #[tokio::test]
    async fn a_pulled_line_drops_its_client_and_serves_again_when_it_is_plugged_in() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (line, online) = watch::channel(true);
        let clock = Clock::start(20.0).unwrap();
        let server =
            tokio::spawn(flight_controller(Port::with_line(listener, online), controller(), clock, |_| {}));
        let mut first = TcpStream::connect(address).await.unwrap();
        assert!(heartbeat(&mut first).await);
        line.send_replace(false);
        let mut buffer = [0; 4096];
        let until_end = async { while first.read(&mut buffer).await.is_ok_and(|n| n > 0) {} };
        assert!(timeout(Duration::from_secs(20), until_end).await.is_ok(), "its client is dropped");
        let mut second = TcpStream::connect(address).await.unwrap();
        let early = timeout(Duration::from_millis(300), second.read(&mut buffer)).await;
        assert!(early.is_err(), "no client is served on a pulled line");
        line.send_replace(true);
        assert!(heartbeat(&mut second).await);
        // The line outlives its owner as it was.
        drop(line);
        assert!(heartbeat(&mut second).await);
        server.abort();
    }
}
