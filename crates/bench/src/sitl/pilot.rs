//! A simulated pilot of a SITL aircraft: sees what the monitor hears, and moves the sticks of the simulated
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
use super::monitor::Heard;
use crate::hands::Hands;
use crate::scenario::ORIGIN;

/// Looks are more frequent than sticks.
const LOOK_PERIOD: Duration = Duration::from_millis(10);

/// Flies for ever.
pub(super) async fn fly(
    mut hands: Hands,
    heard: Arc<Mutex<Heard>>,
    clock: Clock,
    receiver_port: u16,
) -> std::io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let receiver = SocketAddr::from((Ipv4Addr::LOCALHOST, receiver_port));
    loop {
        sleep(LOOK_PERIOD).await;
        let Some(seen) = seen(&heard.lock().unwrap_or_else(PoisonError::into_inner)) else { continue };
        if let Some(channels) = hands.sticks(clock.now(), &seen) {
            let bytes: Vec<u8> = channels.0.iter().flat_map(|pulse| pulse.to_le_bytes()).collect();
            // One that is lost is followed by the next.
            let _ = socket.send_to(&bytes, receiver).await;
        }
    }
}

fn seen(heard: &Heard) -> Option<Truth> {
    let fact = fact_of(&Frame::new(ORIGIN), heard)?;
    let t = &heard.telemetry;
    Some(Truth {
        position: heard.position()?,
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
