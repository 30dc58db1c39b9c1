//! A simulated flight controller behind a TCP port, and waiting for a daemon's state.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{sleep_until, timeout},
};
use wingbeat_api::AircraftStatus;
use wingbeat_geo::{DVec3, Frame, Position};
use wingbeat_hub::Positions;
use wingbeat_onboard::{Clock, Handle};
use wingbeat_sim::{
    flight_controller::{Config, FlightController},
    motion::Profile,
};

/// Longer than anything here takes on a loaded machine: what misses it hangs.
const PATIENCE: Duration = Duration::from_secs(150);

/// Where the first aircraft stands.
pub(crate) fn home() -> Position {
    Position::from_degrees(39.4824, -0.3464, 10.0).unwrap()
}

/// Serves a flight controller for ever, to whoever is connected while `online`.
pub(crate) async fn flight_controller(
    profile: Profile,
    index: u8,
    clock: Clock,
    positions: Option<Positions>,
    mut online: watch::Receiver<bool>,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let offset = DVec3::new(10.0 * f64::from(index), 0.0, 0.0);
    let place = Frame::new(home()).to_position(offset);
    let config = Config { profile, ..Config::new(index + 1, place) };
    let mut fc = FlightController::new(config, 7, clock.now());
    tokio::spawn(async move {
        let mut client: Option<TcpStream> = None;
        let (mut out, mut buffer) = (vec![], [0; 4096]);
        loop {
            tokio::select! {
                () = sleep_until(clock.kernel(fc.poll_timeout())) => {
                    out.clear();
                    fc.advance(clock.now(), &mut out);
                    if let Some(positions) = &positions {
                        positions.set(index.into(), offset + fc.truth().local);
                    }
                    if let Some(stream) = &mut client && stream.write_all(&out).await.is_err() {
                        client = None;
                    }
                }
                Ok((stream, _)) = listener.accept(), if client.is_none() && *online.borrow() => {
                    client = Some(stream);
                }
                read = read(&mut client, &mut buffer) => match read {
                    0 => client = None,
                    length => fc.receive(&buffer[..length]),
                },
                Ok(()) = online.changed() => if !*online.borrow() {
                    client = None;
                },
            }
        }
    });
    address
}

async fn read(client: &mut Option<TcpStream>, buffer: &mut [u8]) -> usize {
    match client {
        Some(stream) => stream.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Waits for a state that satisfies.
pub(crate) async fn until(
    handle: &Handle,
    what: &str,
    mut satisfies: impl FnMut(&AircraftStatus) -> bool,
) -> Arc<AircraftStatus> {
    let mut status = handle.status();
    match timeout(PATIENCE, status.wait_for(|status| satisfies(status))).await {
        Ok(Ok(status)) => status.clone(),
        Ok(Err(_)) => panic!("the driver ended before: {what}"),
        Err(_) => panic!("never: {what}; last {:#?}", handle.status().borrow()),
    }
}
