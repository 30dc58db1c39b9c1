//! Links to the other aircraft: probes that every aircraft broadcasts all the time, from which each counts what it loses
//! of every other, and tests of one link on demand (thesis section 4.1.3.1, *Dronning*). Without a clock and a socket: the
//! driver hands in what was received and asks what is due.
//!
//! A test ends by itself. It takes at most [`TEST_BYTES_S`] of the air, and its datagrams have a budget of their own, so
//! that none of the protocols' waits for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use tokio::sync::oneshot;
use wingbeat_agent::ProbeOrder;
use wingbeat_api::{
    ApiError, Link, LinkTestFlight, LinkTestReport, LinkTestRequest, LinkTestRole, LinkTestRow, LinkTestRows,
    LinkTestSecond, Links as LinksReport,
};
use wingbeat_geo::{Frame, Instant, Position};
use wingbeat_radio::{on_air_bytes, rate_bytes_s};
use wingbeat_wire::{
    Class, DATAGRAM_LEN_MAX, Location, Probe, ROSTER_MAX, SIGNATURE_LEN, SenderMotion, VehicleId,
};

/// Probes of one aircraft that are judged together.
const WINDOW: u32 = 30;
const WINDOW_BITS: u32 = (1 << WINDOW) - 1;
/// Aircraft that are known: those of a roster.
const PEERS_MAX: usize = ROSTER_MAX;
/// The shortest and the longest time between background probes.
pub(crate) const PERIOD_MS: std::ops::RangeInclusive<u64> = 500..=60_000;

/// What a test may take of the air, bytes a second with what stands around them: all of its class's budget but what the
/// background probes take. 802.11 broadcasts carry 750 000 for all aircraft together.
const TEST_BYTES_S: u64 = rate_bytes_s(Class::Test) * 99 / 100;
/// A probe at its longest, without its signature.
const PROBE_LEN: usize = 86;
/// Receivers of one test.
const RECEIVERS_MAX: usize = 16;
const RATE_MAX_HZ: f64 = 100.0;
const SECONDS_MAX: u32 = 600;
/// A receiver notes where it is so often, as often as its flight controller reports it.
const TRACK_PERIOD: Duration = Duration::from_millis(250);
/// A receiver ends so long after the last datagram can have been sent.
const LINGER: Duration = Duration::from_secs(2);
/// Another test runs where one of its datagrams was received within this time.
const OTHER_TEST: Duration = Duration::from_secs(2);
/// Rows of one answer: some 400 kB.
const ROWS_PER_ANSWER: usize = 1_000;

/// What the API asks.
#[derive(Debug)]
pub(crate) enum Ask {
    Links(oneshot::Sender<LinksReport>),
    /// A test to begin; checked.
    Begin {
        test: LinkTestRequest,
        lease: Option<String>,
        /// Whose connection it is, where there are keys.
        from: Option<VehicleId>,
        reply: oneshot::Sender<Result<LinkTestReport, ApiError>>,
    },
    End(oneshot::Sender<Option<LinkTestReport>>),
    Report(oneshot::Sender<Option<LinkTestReport>>),
    Rows {
        from: u32,
        reply: oneshot::Sender<Option<LinkTestRows>>,
    },
}

/// A probe to send now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Due {
    pub(crate) order: ProbeOrder,
    /// The one radio that it is for.
    pub(crate) to: Option<SocketAddr>,
}

/// What is known of the links of one aircraft.
#[derive(Debug)]
pub(crate) struct Links {
    id: VehicleId,
    period: Option<Duration>,
    signature_len: usize,
    next_at: Instant,
    sequence: u32,
    peers: BTreeMap<VehicleId, Peer>,
    /// The test that runs, or the last one.
    test: Option<Test>,
    /// When a datagram of another test was received, and its sender.
    other_test: Option<(Instant, VehicleId)>,
}

impl Links {
    pub(crate) fn new(id: VehicleId, period: Option<Duration>, signature_len: usize) -> Self {
        Self {
            id,
            period,
            signature_len,
            next_at: Instant::ZERO + period.map_or(Duration::ZERO, |period| phase(id, period)),
            sequence: 0,
            peers: BTreeMap::new(),
            test: None,
            other_test: None,
        }
    }

    /// When [`Links::poll`] is due.
    pub(crate) fn due(&self) -> Instant {
        let background = if self.period.is_some() { self.next_at } else { Instant::NEVER };
        self.running().map_or(background, |test| background.min(test.due()))
    }

    fn running(&self) -> Option<&Test> {
        self.test.as_ref().filter(|test| test.ended.is_none())
    }

    /// The next probe that is due. Where a test is over it has to [expire](Links::expire) first.
    pub(crate) fn poll(&mut self, now: Instant, own: Option<SenderMotion>) -> Option<Due> {
        if let Some(test) = self.test.as_mut().filter(|test| test.ended.is_none())
            && let Some(due) = test.poll(now, own, self.signature_len)
        {
            return Some(due);
        }
        let period = self.period.filter(|_| now >= self.next_at)?;
        // What was missed is not made up for.
        self.next_at = now + period;
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        let period_ms = u16::try_from(period.as_millis()).unwrap_or(u16::MAX);
        Some(Due { order: ProbeOrder { test: 0, sequence, period_ms, unsigned_len: 0 }, to: None })
    }

    /// A probe that was due has left the radio.
    pub(crate) fn on_sent(&mut self, now: Instant, order: ProbeOrder, own: Option<SenderMotion>) {
        if let Some(test) = self.test.as_mut().filter(|test| order.test == test.number) {
            test.on_sent(now, own);
        }
    }

    /// A probe was received.
    pub(crate) fn on_probe(
        &mut self,
        now: Instant,
        (from, address): (VehicleId, SocketAddr),
        probe: &Probe,
        own: Option<SenderMotion>,
    ) {
        if probe.test != 0 {
            match self.test.as_mut().filter(|test| test.is(from, probe.test)) {
                Some(test) => test.on_probe(now, probe, own),
                None => self.other_test = Some((now, from)),
            }
            return;
        }
        let distance_m = own.zip(probe.motion).map(|(own, sender)| distance_m(&own, &sender));
        match self.peers.get_mut(&from) {
            Some(peer) => peer.on_probe(now, address, probe, distance_m),
            None => {
                if self.peers.len() >= PEERS_MAX {
                    // Without keys ids have no end: the one that was silent longest makes room.
                    let silent = self.peers.iter().min_by_key(|(_, peer)| peer.at).map(|(id, _)| *id);
                    silent.map(|id| self.peers.remove(&id));
                }
                self.peers.insert(from, Peer::new(now, address, probe, distance_m));
            }
        }
    }

    pub(crate) fn report(&self, now: Instant) -> LinksReport {
        let link = |(id, peer): (&VehicleId, &Peer)| {
            let (received, lost) = peer.counts(now);
            let age_ms = now.since(peer.at).as_millis() as u64;
            // Not finer than positions are.
            let distance_m = peer.distance_m.map(|metres| (metres * 10.0).round() / 10.0);
            Link { from: id.to_string(), received, lost, distance_m, age_ms }
        };
        LinksReport {
            id: self.id.to_string(),
            probe_period_ms: self.period.map_or(0, |period| period.as_millis() as u32),
            links: self.peers.iter().map(link).collect(),
        }
    }

    /// Begins a test that [`check`] accepts. The same one again changes nothing.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        request: LinkTestRequest,
        own: Option<SenderMotion>,
    ) -> Result<LinkTestReport, ApiError> {
        let conflict = |message: String| ApiError { code: "conflict".into(), message };
        let number = request.number.unwrap_or(0);
        if let Some(test) = self.running() {
            if test.number == number {
                return Ok(test.report(now));
            }
            let found = test.number;
            return Err(conflict(format!("link test: found test {found} running, expected none")));
        }
        if let Some((at, other)) = self.other_test.filter(|(at, _)| now.since(*at) < OTHER_TEST) {
            let ms = now.since(at).as_millis();
            return Err(conflict(format!(
                "link test: found a datagram of another test, of {other}, {ms} ms ago, expected a free channel"
            )));
        }
        let own = own.ok_or_else(|| {
            conflict("link test: found no position of this aircraft, expected one: the test is judged by the distance".into())
        })?;
        let sender = VehicleId::from_hexadecimal(&request.sender).unwrap_or_default();
        let role = if sender == self.id { LinkTestRole::Sender } else { LinkTestRole::Receiver };
        let to = match request.receivers.first().filter(|_| request.unicast && role == LinkTestRole::Sender) {
            None => None,
            Some(receiver) => {
                let id = VehicleId::from_hexadecimal(receiver).unwrap_or_default();
                let peer = self.peers.get(&id).ok_or_else(|| conflict(format!(
                    "unicast: found no probe of {receiver} received yet, expected one, which shows its address \
                     (radio.link_probe_period_ms of that aircraft)"
                )))?;
                Some(peer.address)
            }
        };
        let test = Test::new(now, request, (sender, number), role, to, own);
        let report = test.report(now);
        self.test = Some(test);
        Ok(report)
    }

    /// Ends a test whose time is over; what it was, for the log.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<String> {
        self.running().filter(|test| now >= test.until())?;
        self.end(now, "its time is over")
    }

    /// Ends the test that runs; what it was, for the log.
    pub(crate) fn end(&mut self, now: Instant, why: &str) -> Option<String> {
        let test = self.test.as_mut().filter(|test| test.ended.is_none())?;
        test.ended = Some((now, why.into()));
        Some(format!("link test {} ended: {why}", test.number))
    }

    pub(crate) fn test_report(&self, now: Instant) -> Option<LinkTestReport> {
        self.test.as_ref().map(|test| test.report(now))
    }

    pub(crate) fn rows(&self, from: u32) -> Option<LinkTestRows> {
        let test = self.test.as_ref()?;
        let from = from as usize;
        let rows = test.rows.iter().skip(from).take(ROWS_PER_ANSWER).map(Row::report).collect::<Vec<_>>();
        let next = from + rows.len();
        Some(LinkTestRows {
            number: test.number,
            rows,
            next: (next < test.rows.len()).then_some(next as u32),
        })
    }
}

/// The probes of one aircraft.
#[derive(Debug)]
struct Peer {
    address: SocketAddr,
    /// The last one's number, and when it was received.
    sequence: u32,
    at: Instant,
    period: Duration,
    /// Which of the last were received, the last one in the lowest bit.
    bits: u32,
    /// Of how many that is known.
    known: u32,
    distance_m: Option<f64>,
}

impl Peer {
    fn new(now: Instant, address: SocketAddr, probe: &Probe, distance_m: Option<f64>) -> Self {
        let period = Duration::from_millis(probe.period_ms.into());
        Self { address, sequence: probe.sequence, at: now, period, bits: 1, known: 1, distance_m }
    }

    fn on_probe(&mut self, now: Instant, address: SocketAddr, probe: &Probe, distance_m: Option<f64>) {
        let before = std::mem::replace(self, Self::new(now, address, probe, distance_m));
        let ahead = probe.sequence.wrapping_sub(before.sequence);
        (self.bits, self.known) = match ahead {
            1..WINDOW => ((before.bits << ahead | 1) & WINDOW_BITS, (before.known + ahead).min(WINDOW)),
            WINDOW..=0x7fff_ffff => (1, WINDOW),
            // It was started again.
            _ => (1, 1),
        };
    }

    /// Received and lost.
    fn counts(&self, now: Instant) -> (u32, u32) {
        // Half a period is no delay yet.
        let late = now.since(self.at).saturating_sub(self.period / 2);
        let missing = (late.as_micros() / self.period.as_micros().max(1)).min(WINDOW.into()) as u32;
        let received = ((self.bits << missing) & WINDOW_BITS).count_ones();
        (received, (self.known + missing).min(WINDOW) - received)
    }
}

/// One test, from this aircraft's side.
#[derive(Debug)]
struct Test {
    request: LinkTestRequest,
    number: u32,
    sender: VehicleId,
    role: LinkTestRole,
    to: Option<SocketAddr>,
    begun_at: Instant,
    ended: Option<(Instant, String)>,
    /// When the next datagram, or the next row of the track, is due.
    next_at: Instant,
    last_received_at: Instant,
    count: u32,
    rows: Vec<Row>,
    seconds: Vec<LinkTestSecond>,
    /// Where this aircraft was last, and the sender by what it stated.
    own: SenderMotion,
    stated: Option<SenderMotion>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    sequence: Option<u32>,
    time: Duration,
    own: SenderMotion,
    sender: Option<SenderMotion>,
}

impl Test {
    fn new(
        now: Instant,
        request: LinkTestRequest,
        (sender, number): (VehicleId, u32),
        role: LinkTestRole,
        to: Option<SocketAddr>,
        own: SenderMotion,
    ) -> Self {
        Self {
            request,
            number,
            sender,
            role,
            to,
            begun_at: now,
            ended: None,
            next_at: now,
            last_received_at: now,
            count: 0,
            rows: vec![],
            seconds: vec![],
            own,
            stated: None,
        }
    }

    fn is(&self, sender: VehicleId, number: u32) -> bool {
        (self.sender, self.number) == (sender, number)
    }

    fn period(&self) -> Duration {
        match self.role {
            LinkTestRole::Sender => Duration::from_secs_f64(1.0 / self.request.rate_hz),
            LinkTestRole::Receiver => TRACK_PERIOD,
        }
    }

    fn until(&self) -> Instant {
        let sending = self.begun_at + Duration::from_secs(self.request.seconds.into());
        match self.role {
            LinkTestRole::Sender => sending,
            LinkTestRole::Receiver => sending.max(self.last_received_at) + LINGER,
        }
    }

    fn due(&self) -> Instant {
        self.next_at.min(self.until())
    }

    fn poll(&mut self, now: Instant, own: Option<SenderMotion>, signature_len: usize) -> Option<Due> {
        if now < self.next_at {
            return None;
        }
        let period = self.period();
        // At most the whole test is made up for: a driver that was late sends what is due.
        self.next_at = self.next_at + period;
        match self.role {
            LinkTestRole::Sender => {
                let unsigned_len = (self.request.payload_bytes as usize).saturating_sub(signature_len);
                let period_ms = u16::try_from(period.as_millis()).unwrap_or(u16::MAX).max(1);
                let order = ProbeOrder { test: self.number, sequence: self.count, period_ms, unsigned_len };
                Some(Due { order, to: self.to })
            }
            LinkTestRole::Receiver => {
                self.own = own.unwrap_or(self.own);
                self.note(now, None, None);
                None
            }
        }
    }

    fn note(&mut self, now: Instant, sequence: Option<u32>, sender: Option<SenderMotion>) {
        self.rows.push(Row { sequence, time: now.since(self.begun_at), own: self.own, sender });
    }

    /// The datagram that was due left; one that did not is not counted, and its number is the next one's.
    fn on_sent(&mut self, now: Instant, own: Option<SenderMotion>) {
        self.own = own.unwrap_or(self.own);
        self.note(now, Some(self.count), None);
        self.count += 1;
    }

    fn on_probe(&mut self, now: Instant, probe: &Probe, own: Option<SenderMotion>) {
        let most = (self.request.rate_hz * f64::from(self.request.seconds)).ceil() as u32;
        if self.ended.is_some() || self.role == LinkTestRole::Sender || probe.sequence > most {
            return;
        }
        self.own = own.unwrap_or(self.own);
        self.stated = probe.motion.or(self.stated);
        self.last_received_at = now;
        self.count += 1;
        self.note(now, Some(probe.sequence), self.stated);
        let second = (f64::from(probe.sequence) / self.request.rate_hz) as usize;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, LinkTestSecond::default());
        }
        if let Some(second) = self.seconds.get_mut(second) {
            second.received += 1;
            second.distance_m = self.stated.map(|sender| distance_m(&self.own, &sender));
        }
    }

    fn report(&self, now: Instant) -> LinkTestReport {
        let ended_at = self.ended.as_ref().map_or(now, |(at, _)| *at);
        LinkTestReport {
            test: self.request.clone(),
            role: self.role,
            ended: self.ended.as_ref().map(|(_, why)| why.clone()),
            elapsed_ms: now.since(self.begun_at).as_millis() as u64,
            ran_ms: ended_at.since(self.begun_at).as_millis() as u64,
            count: self.count,
            seconds: self.seconds.clone(),
        }
    }
}

impl Row {
    fn report(&self) -> LinkTestRow {
        LinkTestRow {
            sequence: self.sequence,
            time_ms: self.time.as_millis() as u64,
            own: flight(&self.own),
            sender: self.sender.as_ref().map(flight),
        }
    }
}

fn flight(motion: &SenderMotion) -> LinkTestFlight {
    let SenderMotion { at, heading_cdeg, east_cm_s, north_cm_s, up_cm_s } = motion;
    let m_s = |cm_s: i16| f64::from(cm_s) / 100.0;
    LinkTestFlight {
        latitude_deg: f64::from(at.latitude_e7) / 1e7,
        longitude_deg: f64::from(at.longitude_e7) / 1e7,
        altitude_m: f64::from(at.altitude_mm) / 1e3,
        heading_deg: f64::from(*heading_cdeg) / 100.0,
        east_m_s: m_s(*east_cm_s),
        north_m_s: m_s(*north_cm_s),
        up_m_s: m_s(*up_cm_s),
    }
}

/// When in its period an aircraft sends: those that are switched on together do not send together (Fibonacci hashing).
fn phase(id: VehicleId, period: Duration) -> Duration {
    let share = id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    period.mul_f64(share as f64 / 65_536.0)
}

/// Over the ground.
fn distance_m(own: &SenderMotion, sender: &SenderMotion) -> f64 {
    let position = |at: &Location| Position {
        latitude_e7: at.latitude_e7,
        longitude_e7: at.longitude_e7,
        altitude_mm: at.altitude_mm,
    };
    Frame::new(position(&own.at)).to_local(position(&sender.at)).truncate().length()
}

/// Whether a test can be flown by an aircraft of this id.
///
/// # Errors
/// The first value that cannot be, with what was found and expected.
pub(crate) fn check(test: &LinkTestRequest, me: &str, is_secured: bool) -> Result<(), String> {
    let signature_len = if is_secured { SIGNATURE_LEN } else { 0 };
    // Without keys a draft keeps room for a signature all the same.
    let (least, most) = (PROBE_LEN + signature_len, DATAGRAM_LEN_MAX - (SIGNATURE_LEN - signature_len));
    let LinkTestRequest { number, sender, receivers, rate_hz, payload_bytes, seconds, unicast } = test;
    let is_id = |id: &String| VehicleId::from_hexadecimal(id).is_some_and(|parsed| parsed.to_string() == *id);
    let named = |id: &String| id.chars().take(40).collect::<String>();
    if number.is_none_or(|number| number == 0) {
        return Err(format!("number: found {}, expected 1 to 4294967295", number.map_or("none", |_| "0")));
    }
    if let Some(id) = std::iter::once(sender).chain(receivers).find(|id| !is_id(id)) {
        return Err(format!(
            "sender, receivers: found the id {:?}, expected 16 lower-case hexadecimal digits",
            named(id)
        ));
    }
    let distinct: BTreeSet<&String> = std::iter::once(sender).chain(receivers).collect();
    if receivers.is_empty() || receivers.len() > RECEIVERS_MAX || distinct.len() != receivers.len() + 1 {
        let found = receivers.len();
        return Err(format!(
            "receivers: found {found}, expected 1 to {RECEIVERS_MAX} aircraft, each once and none of them the sender"
        ));
    }
    if *unicast && receivers.len() > 1 {
        let found = receivers.len();
        return Err(format!("unicast: found {found} receivers, expected one"));
    }
    if !(1.0..=RATE_MAX_HZ).contains(rate_hz) {
        return Err(format!("rate_hz: found {rate_hz}, expected 1 to {RATE_MAX_HZ}"));
    }
    let bytes = *payload_bytes as usize;
    if !(least..=most).contains(&bytes) {
        return Err(format!("payload_bytes: found {bytes}, expected {least} to {most}"));
    }
    if !(1..=SECONDS_MAX).contains(seconds) {
        return Err(format!("seconds: found {seconds}, expected 1 to {SECONDS_MAX}"));
    }
    let share = on_air_bytes(bytes) as f64 * rate_hz;
    if share > TEST_BYTES_S as f64 {
        return Err(format!(
            "rate_hz, payload_bytes: found {share:.0} bytes a second with their frames, expected at most {TEST_BYTES_S}, \
             a fifth of the air"
        ));
    }
    if *sender != me && receivers.iter().all(|id| id != me) {
        return Err(format!("sender, receivers: found no {me}, expected this aircraft among them"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
