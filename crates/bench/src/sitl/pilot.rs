//! A simulated pilot of a SITL aircraft: sees what the monitor receives, and moves the sticks of the simulated
//! receiver over UDP, as a joystick at SITL's RC input does.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::sleep;
use wingbeat_geo::{DVec3, Frame};
use wingbeat_radio::Clock;
use wingbeat_sim::flight_controller::Truth;

use super::fact_of;
use super::monitor::Reports;
use crate::transmitter::Transmitter;

/// Reports are read more often than sticks are sent.
const READ_PERIOD: Duration = Duration::from_millis(10);

/// Flies until the future is dropped.
pub(super) async fn fly(
    mut transmitter: Transmitter,
    reports: Arc<Mutex<Reports>>,
    frame: Frame,
    clock: Clock,
    receiver_port: u16,
) -> std::io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let receiver = SocketAddr::from((Ipv4Addr::LOCALHOST, receiver_port));
    loop {
        sleep(READ_PERIOD).await;
        let truth = truth(&frame, &reports.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(truth) = truth else { continue };
        if let Some(channels) = transmitter.sticks(clock.now(), &truth) {
            let bytes: Vec<u8> = channels.0.iter().flat_map(|pulse| pulse.to_le_bytes()).collect();
            // One that is lost is followed by the next.
            let _ = socket.send_to(&bytes, receiver).await;
        }
    }
}

fn truth(frame: &Frame, reports: &Reports) -> Option<Truth> {
    let fact = fact_of(frame, reports)?;
    let t = &reports.telemetry;
    Some(Truth {
        position: reports.position()?,
        local: DVec3::new(fact.local.x, fact.local.y, t.height_m),
        velocity: fact.velocity,
        heading_rad: t.heading_rad,
        armed: fact.armed,
        mode: t.mode()?,
        landed: fact.landed,
        flight_time: Duration::ZERO,
        touchdown_m_s: 0.0,
    })
}
