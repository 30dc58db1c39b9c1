//! The simulated channel in real time: N radios in one process, joined by `wingbeat_sim::channel`.
//!
//! The channel decides which radios receive a datagram and when; the hub waits until then and delivers it.
//! Time is a [`Clock`]'s, so a demo that runs ten times as fast has a channel that runs ten times as fast.
//! The kernel's timers tick in milliseconds: a delivery is up to a millisecond of kernel time late, which
//! the deterministic bench, with its own clock, is not.
//!
//! Only benches and tests link this crate. An aircraft links `wingbeat_radio`, and no simulator.
#![forbid(unsafe_code)]

pub mod serve;

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::JoinHandle,
    time::sleep_until,
};
use wingbeat_geo::{DVec3, Instant};
use wingbeat_radio::{Clock, RECEIVED_MAX, Radio, RadioEvent, SendError, check_len};
use wingbeat_sim::channel::{Channel, Counters, Delivery};
use wingbeat_wire::Class;

/// Datagrams sent and not yet on the channel, of all radios together.
const SENT_MAX: usize = 4_096;
/// Receptions that are due later, of all radios together: 128 aircraft that send in the same instant cause
/// 16 256.
const DUE_MAX: usize = 65_536;

/// The position of every aircraft, in metres east, north and up of a common origin. The owner of the
/// simulated flight controllers writes it; the hub reads it when a datagram is sent.
#[derive(Clone, Debug)]
pub struct Positions(Arc<Mutex<Vec<DVec3>>>);

impl Positions {
    /// `count` aircraft, all at the origin.
    fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![DVec3::ZERO; count])))
    }

    /// Moves one aircraft; an index that no radio has is ignored.
    pub fn set(&self, aircraft: usize, position: DVec3) {
        if let Some(slot) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(aircraft) {
            *slot = position;
        }
    }

    /// The positions now, in the order of the radios.
    pub fn get(&self) -> Vec<DVec3> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Totals since the hub was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HubCounters {
    /// Sent, delivered and lost on the channel.
    pub channel: Counters,
    /// Receptions that the channel granted and a full queue prevented: the machine is too slow for the flight.
    pub overflows: u64,
}

/// The task that joins the radios. Dropping it ends every radio.
#[derive(Debug)]
pub struct Hub {
    positions: Positions,
    counters: Arc<Mutex<HubCounters>>,
    task: JoinHandle<()>,
}

/// One radio of a hub, for one daemon.
#[derive(Debug)]
pub struct HubRadio {
    index: usize,
    clock: Clock,
    sent: mpsc::Sender<Transmission>,
    events: mpsc::Receiver<RadioEvent>,
    overflows: Arc<AtomicU64>,
}

struct Transmission {
    at: Instant,
    from: usize,
    /// Only this radio receives it.
    to: Option<usize>,
    datagram: Arc<[u8]>,
}

/// What stands for the address of a radio.
fn address(index: usize) -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, u16::try_from(index).unwrap_or(u16::MAX)).into()
}

impl HubRadio {
    fn transmit(&self, to: Option<usize>, datagram: &[u8]) -> Result<(), SendError> {
        check_len(datagram)?;
        let (at, from) = (self.clock.now(), self.index);
        self.sent.try_send(Transmission { at, from, to, datagram: datagram.into() }).map_err(|error| {
            match error {
                TrySendError::Full(_) => SendError::Busy,
                TrySendError::Closed(_) => SendError::Down,
            }
        })
    }
}

/// The hub's end of a radio.
struct Receiver {
    events: mpsc::Sender<RadioEvent>,
    overflows: Arc<AtomicU64>,
}

impl Hub {
    /// Starts `count` radios on a channel that was made for as many.
    pub fn spawn(channel: Channel, count: usize, clock: Clock) -> (Self, Vec<HubRadio>) {
        let (sent, transmissions) = mpsc::channel(SENT_MAX);
        let mut radios = vec![];
        let mut receivers = vec![];
        for index in 0..count {
            let (sender, events) = mpsc::channel(RECEIVED_MAX);
            // The queue is new and empty.
            let _ = sender.try_send(RadioEvent::Up);
            let overflows = Arc::new(AtomicU64::new(0));
            receivers.push(Receiver { events: sender, overflows: overflows.clone() });
            radios.push(HubRadio { index, clock, sent: sent.clone(), events, overflows });
        }
        let positions = Positions::new(count);
        let counters = Arc::new(Mutex::new(HubCounters::default()));
        let task =
            tokio::spawn(run(channel, clock, positions.clone(), counters.clone(), transmissions, receivers));
        (Self { positions, counters, task }, radios)
    }

    /// The positions, for the owner of the simulated flight controllers to write.
    pub fn positions(&self) -> Positions {
        self.positions.clone()
    }

    /// Totals since the hub was started.
    pub fn counters(&self) -> HubCounters {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Radio for HubRadio {
    fn send(&self, _: Class, datagram: &[u8]) -> Result<(), SendError> {
        self.transmit(None, datagram)
    }

    /// The channel loses it as it loses broadcasts: nothing is acknowledged and nothing repeated.
    fn send_to(&self, radio: SocketAddr, datagram: &[u8]) -> Result<(), SendError> {
        self.transmit(Some(radio.port().into()), datagram)
    }

    async fn recv(&mut self) -> Option<RadioEvent> {
        self.events.recv().await
    }

    fn overflows(&self) -> u64 {
        self.overflows.load(Ordering::Relaxed)
    }
}

async fn run(
    mut channel: Channel,
    clock: Clock,
    positions: Positions,
    counters: Arc<Mutex<HubCounters>>,
    mut transmissions: mpsc::Receiver<Transmission>,
    receivers: Vec<Receiver>,
) {
    // By arrival, then by the order of sending.
    let mut due = BTreeMap::<(Instant, u64), (usize, usize, Arc<[u8]>)>::new();
    let mut serial = 0;
    let mut deliveries: Vec<Delivery> = vec![];
    let mut overflows = 0;
    loop {
        let next = due.first_key_value().map(|((at, _), _)| *at);
        tokio::select! {
            transmission = transmissions.recv() => {
                let Some(Transmission { at, from, to, datagram }) = transmission else { return };
                deliveries.clear();
                channel.transmit(at, from, datagram.len(), &positions.get(), &mut deliveries);
                for delivery in deliveries.iter().filter(|delivery| to.is_none_or(|to| to == delivery.to)) {
                    if due.len() >= DUE_MAX {
                        overflows += 1;
                        continue;
                    }
                    due.insert((delivery.at, serial), (delivery.to, from, datagram.clone()));
                    serial += 1;
                }
            }
            () = sleep_until(clock.kernel(next.unwrap_or(Instant::NEVER))), if next.is_some() => {
                let now = clock.now();
                while let Some(entry) = due.first_entry().filter(|entry| entry.key().0 <= now) {
                    let (to, from, datagram) = entry.remove();
                    let Some(receiver) = receivers.get(to) else { continue };
                    // A radio whose owner has ended receives nothing: an aircraft that is switched off.
                    let event = RadioEvent::Datagram { from: address(from), bytes: datagram.to_vec() };
                    if let Err(TrySendError::Full(_)) = receiver.events.try_send(event) {
                        receiver.overflows.fetch_add(1, Ordering::Relaxed);
                        overflows += 1;
                    }
                }
            }
        }
        *counters.lock().unwrap_or_else(PoisonError::into_inner) =
            HubCounters { channel: channel.counters(), overflows };
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_geo::Duration;
    use wingbeat_sim::channel::{Draw, Model, airtime};

    use super::*;

    fn hub(model: Model, count: usize, clock: Clock) -> (Hub, Vec<HubRadio>) {
        Hub::spawn(Channel::new(model, Draw::PerPacket, 7, count), count, clock)
    }

    fn datagram(from: usize, bytes: &[u8]) -> RadioEvent {
        RadioEvent::Datagram { from: address(from), bytes: bytes.to_vec() }
    }

    async fn up(radios: &mut [HubRadio]) {
        for radio in radios {
            assert_eq!(radio.recv().await, Some(RadioEvent::Up));
        }
    }

    /// Everything that a radio receives until a second passes without an event.
    async fn received(radio: &mut HubRadio) -> Vec<RadioEvent> {
        let mut all = vec![];
        while let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(1), radio.recv()).await {
            all.push(event);
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn the_other_radios_receive_a_datagram_after_its_airtime() {
        for speed in [1.0, 10.0] {
            let clock = Clock::start(speed).unwrap();
            let (hub, mut radios) = hub(Model::Unrestricted, 3, clock);
            up(&mut radios).await;
            let sent = clock.now();
            radios[1].send(Class::Beacon, &[9; 705]).unwrap();
            for to in [0, 2] {
                assert_eq!(radios[to].recv().await, Some(datagram(1, &[9; 705])));
                let took = clock.now().since(sent);
                let late = took.saturating_sub(airtime(705)).as_secs_f64();
                assert!(took >= airtime(705) && late <= 0.002 * speed, "{took:?} at speed {speed}");
            }
            assert!(received(&mut radios[1]).await.is_empty(), "not the sender");
            assert_eq!((hub.counters().channel.sent, hub.counters().channel.delivered), (1, 2));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_datagram_for_one_radio_is_received_by_that_alone() {
        let (_hub, mut radios) = hub(Model::Unrestricted, 3, Clock::real_time());
        up(&mut radios).await;
        radios[2].send(Class::Beacon, b"beacon").unwrap();
        let Some(RadioEvent::Datagram { from, .. }) = radios[0].recv().await else { panic!("a datagram") };
        radios[0].send_to(from, b"probe").unwrap();
        assert_eq!(received(&mut radios[2]).await, [datagram(0, b"probe")]);
        assert_eq!(received(&mut radios[1]).await, [datagram(2, b"beacon")]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_radio_out_of_range_receives_nothing_until_it_is_within_range_again() {
        let (hub, mut radios) = hub(Model::FixedRange { range_m: 100.0 }, 2, Clock::real_time());
        up(&mut radios).await;
        let positions = hub.positions();
        positions.set(1, DVec3::new(150.0, 0.0, 10.0));
        positions.set(7, DVec3::ZERO);
        radios[0].send(Class::Beacon, b"far").unwrap();
        assert!(received(&mut radios[1]).await.is_empty());
        assert_eq!(hub.counters().channel.lost, 1);
        positions.set(1, DVec3::new(50.0, 0.0, 10.0));
        radios[0].send(Class::Beacon, b"near").unwrap();
        assert_eq!(received(&mut radios[1]).await, [datagram(0, b"near")]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_is_not_drained_overflows_and_the_other_radios_continue() {
        let (hub, mut radios) = hub(Model::Unrestricted, 3, Clock::real_time());
        up(&mut radios).await;
        let total = RECEIVED_MAX as u64 + 50;
        for number in 0..total {
            radios[0].send(Class::Beacon, &number.to_le_bytes()).unwrap();
            assert_eq!(radios[1].recv().await, Some(datagram(0, &number.to_le_bytes())));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((radios[1].overflows(), radios[2].overflows(), hub.counters().overflows), (0, 50, 50));
        assert_eq!(received(&mut radios[2]).await.len(), RECEIVED_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn one_hundred_radios_receive_each_other_and_one_that_ended_disturbs_none() {
        let (hub, mut radios) = hub(Model::Unrestricted, 100, Clock::real_time());
        up(&mut radios).await;
        drop(radios.remove(0));
        for radio in &radios {
            radio.send(Class::Beacon, b"beacon").unwrap();
        }
        for radio in &mut radios {
            assert_eq!(received(radio).await.len(), 98);
        }
        let counters = hub.counters();
        assert_eq!((counters.channel.sent, counters.channel.delivered, counters.overflows), (99, 99 * 99, 0));
        drop(hub);
        assert_eq!(radios[0].recv().await, None, "without a hub there is no radio");
        assert_eq!(radios[0].send(Class::Beacon, b"beacon"), Err(SendError::Down));
    }
}
