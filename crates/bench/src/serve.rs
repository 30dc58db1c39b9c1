//! Serves a simulated flight controller in real time over TCP, as ArduPilot's SITL serves SERIAL0: one
//! client per port at a time, others wait in the queue of the socket until it leaves. The flight goes on
//! whether or not somebody listens.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep_until, timeout};
use wingbeat_radio::Clock;
use wingbeat_sim::flight_controller::FlightController;

/// A client that takes nothing for so long is dropped: it would hold up the flight.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// A shortage of the system (file descriptors) is waited out for this time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves `fc` on `listener` until the future is dropped; `watch` sees it after every tick.
///
/// # Errors
/// The listener itself broke. A client's errors only end that client.
pub async fn flight_controller(
    listener: TcpListener,
    mut fc: FlightController,
    clock: Clock,
    mut watch: impl FnMut(&mut FlightController),
) -> io::Result<()> {
    let mut client: Option<TcpStream> = None;
    let mut out = Vec::new();
    let mut buffer = [0; 4096];
    loop {
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
            accepted = listener.accept(), if client.is_none() => match accepted {
                Ok((stream, _)) => {
                    // Small frames leave at once; without it they come late, not wrong.
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

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_geo::{Instant, Position};
    use wingbeat_sim::flight_controller::Config;

    async fn served() -> (std::net::SocketAddr, tokio::task::JoinHandle<io::Result<()>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let home = Position::from_degrees(39.48, -0.34, 10.0).unwrap();
        let fc = FlightController::new(Config::new(7, home), 1, Instant::ZERO);
        (address, tokio::spawn(flight_controller(listener, fc, Clock::start(20.0).unwrap(), |_| {})))
    }

    /// Whether a heartbeat of system 7 comes before the test gives up.
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
        // The second is let in, and hears nothing while the first is there.
        let mut second = TcpStream::connect(address).await.unwrap();
        let mut buffer = [0; 16];
        let early = timeout(Duration::from_millis(300), second.read(&mut buffer)).await;
        assert!(early.is_err(), "two clients at once");
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
}
