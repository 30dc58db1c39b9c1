//! Time and Remote ID of a whole daemon: what it shows, and what it gives chronyd.

use crate::common::aircraft;
use crate::common::config;

use std::os::unix::net::UnixDatagram;

use aircraft::{home, until};
use config::config;
use tokio::net::TcpListener;
use wingbeat_agent::{Operator, RemoteIdConfig, open_drone_id};
use wingbeat_geo::Instant;
use wingbeat_hub::{Hub, serve};
use wingbeat_link::Endpoint;
use wingbeat_onboard::{Clock, Config, start};
use wingbeat_protocol::mission;
use wingbeat_sim::{
    channel::{Channel, Draw, Model},
    flight_controller::{self, FlightController, Parameter},
    motion::Profile,
};
use wingbeat_wire::VehicleId;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_shows_gnss_time_gives_it_to_chronyd_and_states_who_flies() {
    let clock = Clock::real_time();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut controller = flight_controller::Config::new(1, home());
    controller.profile = Profile::Copter462;
    let parameters =
        [(Parameter::DID_ENABLE, 1.0), (Parameter::DID_MAVPORT, 1.0), (Parameter::DID_OPTIONS, 1.0)];
    controller.parameters.extend(parameters);
    let controller = FlightController::new(controller, 7, Instant::ZERO);
    tokio::spawn(serve::flight_controller(listener, controller, clock, |_| {}));

    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("chrony.sock");
    let chronyd = UnixDatagram::bind(&socket).unwrap();
    chronyd.set_nonblocking(true).unwrap();

    let id = VehicleId(0xa1);
    let mut agent = wingbeat_agent::Config::new(mission::Config::new(id));
    agent.remote_id = Some(RemoteIdConfig {
        identity: open_drone_id::Identity {
            uas_id: "1581F5FJD238800D26V9".try_into().unwrap(),
            id_kind: open_drone_id::IdKind::SerialNumber,
            operator_id: "".try_into().unwrap(),
            description: "".try_into().unwrap(),
        },
        operator: Operator::TakeOff,
    });
    let (_hub, mut radios) = Hub::spawn(Channel::new(Model::Unrestricted, Draw::PerPacket, 1, 1), 1, clock);
    let config = Config {
        chrony_socket: Some(socket),
        ..config(agent, Endpoint::TcpClient { host: "127.0.0.1".into(), port })
    };
    let daemon = start(config, clock, radios.remove(0)).await.unwrap();
    let status = until(&daemon, "chronyd is given GNSS time", |status| {
        status.measurements.clock.is_some_and(|clock| clock.is_fed)
    })
    .await;
    let shown = status.measurements.clock.unwrap();
    // The flight controller follows this machine's clock.
    let ahead_us = shown.ahead_us.unwrap();
    assert!(ahead_us.unsigned_abs() < 500_000, "{shown:?}");
    let mut sample = [0; 64];
    let length = chronyd.recv(&mut sample).unwrap();
    assert_eq!(sample[length - 4..length], 0x534f_434b_i32.to_ne_bytes());
    let offset_s = f64::from_ne_bytes(sample[length - 24..length - 16].try_into().unwrap());
    assert!(offset_s.abs() < 0.5, "{offset_s}");

    let status = until(&daemon, "the transmitter lets it arm", |status| {
        status.measurements.remote_id.as_ref().is_some_and(|remote_id| remote_id.may_arm == Some(true))
    })
    .await;
    assert!(status.checks.iter().any(|check| check.name == "remote ID" && check.passed));
    assert!(status.checks.iter().any(|check| check.name == "clock" && check.passed));
    daemon.stop().await;
}
