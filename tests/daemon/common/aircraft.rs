//! A simulated flight controller behind a TCP port, and waiting for a daemon's state.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::{net::TcpListener, sync::watch, time::timeout};
use wingbeat_api::AircraftStatus;
use wingbeat_geo::{DVec3, Frame, Position};
use wingbeat_hub::{
    Positions,
    serve::{self, Port},
};
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

/// Serves a flight controller to one client after the other while `online`. It stands so far east of [`home`].
pub(crate) async fn flight_controller(
    profile: Profile,
    (index, east_m): (u8, f64),
    clock: Clock,
    positions: Option<Positions>,
    online: watch::Receiver<bool>,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let offset = DVec3::new(east_m, 0.0, 0.0);
    let place = Frame::new(home()).to_position(offset);
    let config = Config { profile, ..Config::new(index + 1, place) };
    let fc = FlightController::new(config, 7, clock.now());
    tokio::spawn(serve::flight_controller(Port::with_line(listener, online), fc, clock, move |fc| {
        if let Some(positions) = &positions {
            positions.set(index.into(), offset + fc.truth().local);
        }
    }));
    address
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
