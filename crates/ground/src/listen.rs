//! Aircraft that are found by their datagrams on the radio.
//!
//! A datagram commands nothing here, and nothing that it says is shown. Its sender is asked who it is, over HTTP at the address that the
//! datagram came from, and only an aircraft that answers under the id of its datagram is followed. Where the console has keys the datagram
//! must be signed by an aircraft of the roster, newer than its last, and the answer must come by the same aircraft's key.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use wingbeat_api::{RadioListening, Refusal, UnansweredSender};
use wingbeat_radio::{Radio, RadioEvent, Screened};
use wingbeat_wire::{Refused, Role, Roster, Screen, VehicleId};

use crate::client::{self, Clients};
use crate::find::base;
use crate::owner::Found;
use crate::service::Service;

/// Senders that are kept; with keys a roster has no more.
const SENDERS_MAX: usize = 256;
/// Between two askings of one sender that has not answered as the aircraft of its datagrams.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// Senders that are asked at the same time.
const ASKED_MAX: usize = 8;
/// A sender whose last datagram is older is no longer asked: its address may be another's by now.
const RECEIVED_WITHIN: Duration = Duration::from_secs(10);
/// The next signature of a sender is checked after this time where its address is the same.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Signatures that are checked in a second: what is more counts as `storm`. A fleet of 128 needs as many.
const CHECKS_MAX: u32 = 256;
/// Senders without an answer that are shown.
const SHOWN_MAX: usize = 16;

/// Where it listens, and what it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// What the console shows of the radio, for example `wlan0:14600`.
    pub radio: String,
    /// The port of the aircraft's APIs (`http.bind`).
    pub api_port: u16,
}

/// What is known of a sender of datagrams.
#[derive(Clone, Debug)]
struct Sender {
    address: IpAddr,
    /// Of the newest datagram.
    counter: u64,
    received: Instant,
    checked: Instant,
    ask_at: Instant,
    is_asked: bool,
    /// It answered as the aircraft of its datagrams, and is followed.
    is_found: bool,
    /// Why not, the last time.
    problem: Option<String>,
}

/// The senders of the fleet's datagrams.
#[derive(Debug)]
struct Senders {
    roster: Box<Roster>,
    screen: Screen,
    by_id: BTreeMap<VehicleId, Sender>,
    /// When the second began in which signatures are counted, and how many they are.
    checks: (Instant, u32),
    refused: [u64; Refused::ALL.len()],
}

impl Senders {
    fn new(roster: Box<Roster>, now: Instant) -> Self {
        let screen = roster.screen();
        Self { roster, screen, by_id: BTreeMap::new(), checks: (now, 0), refused: [0; Refused::ALL.len()] }
    }

    /// Takes a datagram; what is refused is counted by its reason.
    fn take(&mut self, now: Instant, address: IpAddr, datagram: &[u8]) {
        if let Err(reason) = self.admit(now, address, datagram) {
            self.refused[reason as usize] += 1;
        }
    }

    fn admit(&mut self, now: Instant, address: IpAddr, datagram: &[u8]) -> Result<(), Refused> {
        let claimed = self.screen.check(datagram)?;
        if let Some(known) = self.by_id.get_mut(&claimed)
            && known.address == address
            && now < known.checked + CHECK_EVERY
        {
            // Where it is was proved a moment ago.
            return Ok(());
        }
        if self.by_id.len() >= SENDERS_MAX && !self.by_id.contains_key(&claimed) {
            return Err(Refused::NoRoom);
        }
        if now >= self.checks.0 + Duration::from_secs(1) {
            self.checks = (now, 0);
        }
        let checks = &mut self.checks.1;
        let last = self.by_id.get(&claimed).map(|known| known.counter);
        let opened = self.roster.open_if(datagram, |claim| {
            if last.is_some_and(|last| claim.counter <= last) {
                return Err(Refused::Replayed);
            }
            *checks += 1;
            if *checks > CHECKS_MAX { Err(Refused::Storm) } else { Ok(()) }
        })?;
        // A console and a safety pilot send too, and are no aircraft.
        if opened.role().is_some_and(|role| role != Role::Aircraft) {
            return Ok(());
        }
        let counter = opened.counter();
        let is_new = Sender {
            address,
            counter,
            received: now,
            checked: now,
            ask_at: now,
            is_asked: false,
            is_found: false,
            problem: None,
        };
        let known = self.by_id.entry(claimed).or_insert(is_new);
        if known.address != address {
            (known.address, known.ask_at) = (address, now);
        }
        (known.counter, known.received, known.checked) = (counter, now, now);
        Ok(())
    }

    /// A sender that is to be asked now; it counts as asked until [`Senders::answered`].
    fn next_to_ask(&mut self, now: Instant) -> Option<(VehicleId, IpAddr)> {
        let due = |sender: &Sender| {
            !sender.is_found
                && !sender.is_asked
                && sender.ask_at <= now
                && now < sender.received + RECEIVED_WITHIN
        };
        let (id, sender) =
            self.by_id.iter_mut().filter(|(_, sender)| due(sender)).min_by_key(|(_, s)| s.ask_at)?;
        sender.is_asked = true;
        Some((*id, sender.address))
    }

    /// What became of asking; a sender whose address has changed meanwhile is asked again.
    fn answered(&mut self, now: Instant, id: VehicleId, address: IpAddr, answer: Result<(), String>) {
        let Some(sender) = self.by_id.get_mut(&id) else { return };
        sender.is_asked = false;
        if sender.address != address {
            return;
        }
        sender.is_found = answer.is_ok();
        sender.problem = answer.err();
        sender.ask_at = now + ASK_EVERY;
    }
}

/// What a radio receives, for its task and for the owner of the picture.
#[derive(Clone, Debug)]
pub(crate) struct Listener(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    listening: Listening,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    senders: Senders,
    problem: Option<String>,
    datagrams: u64,
    /// What the radio's screen refused: outsiders' datagrams, which take no place of the fleet's.
    screened: Screened,
    overflows: u64,
}

impl Listener {
    /// One that opens datagrams by this roster.
    pub(crate) fn new(listening: Listening, roster: Box<Roster>) -> Self {
        let state = State {
            senders: Senders::new(roster, Instant::now()),
            problem: Some("the radio is not open yet".to_owned()),
            datagrams: 0,
            screened: Screened::default(),
            overflows: 0,
        };
        Self(Arc::new(Inner { listening, state: Mutex::new(state) }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an operator sees of it.
    pub(crate) fn shown(&self) -> RadioListening {
        let (now, state) = (Instant::now(), self.lock());
        let senders = &state.senders;
        let is_received = |sender: &&Sender| now < sender.received + RECEIVED_WITHIN;
        let unanswered = senders.by_id.iter().filter(|(_, sender)| !sender.is_found && is_received(sender));
        let unanswered = unanswered.take(SHOWN_MAX).map(|(id, sender)| UnansweredSender {
            id: id.to_string(),
            address: sender.address.to_string(),
            problem: sender.problem.clone().unwrap_or_else(|| "is being asked".to_owned()),
        });
        let counts = senders.refused.iter().zip(state.screened).map(|(opened, screened)| opened + screened);
        let refused = Refused::ALL.iter().map(|reason| reason.name()).zip(counts);
        let refused = refused.chain([("overflow", state.overflows)]).filter(|(_, count)| *count > 0);
        RadioListening {
            radio: self.0.listening.radio.clone(),
            problem: state.problem.clone(),
            datagrams: state.datagrams,
            received: u32::try_from(senders.by_id.values().filter(is_received).count()).unwrap_or(u32::MAX),
            unanswered: unanswered.collect(),
            refused: refused.map(|(reason, count)| Refusal { reason: reason.to_owned(), count }).collect(),
        }
    }

    /// Receives, asks and adds until the radio has ended. Nothing is sent by it.
    pub(crate) async fn run<R: Radio>(self, mut radio: R, clients: Clients, service: Service) {
        let scheme = if clients.keys().is_some() { "https" } else { "http" };
        radio.screen(self.lock().senders.screen.clone());
        let mut asking = JoinSet::new();
        let mut tick = interval(Duration::from_millis(200));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = radio.recv() => match event {
                    Some(RadioEvent::Datagram { from, bytes }) => {
                        let mut state = self.lock();
                        state.datagrams += 1;
                        state.senders.take(Instant::now(), from.ip(), &bytes);
                    }
                    Some(RadioEvent::Up) => {
                        tracing::info!("aircraft are found by their datagrams on {}", self.0.listening.radio);
                        self.lock().problem = None;
                    }
                    Some(RadioEvent::Down { reason }) => {
                        tracing::warn!("{reason}");
                        self.lock().problem = Some(reason);
                    }
                    None => return tracing::error!("no aircraft is found by its datagrams any more: the radio has ended"),
                },
                Some(asked) = asking.join_next() => if let Ok((id, address, answer)) = asked {
                    self.lock().senders.answered(Instant::now(), id, address, answer);
                },
                _ = tick.tick() => {
                    let mut state = self.lock();
                    (state.screened, state.overflows) = (radio.refused(), radio.overflows());
                    while asking.len() < ASKED_MAX {
                        let Some((id, address)) = state.senders.next_to_ask(Instant::now()) else { break };
                        let url = base(scheme, address, self.0.listening.api_port);
                        let (clients, service) = (clients.clone(), service.clone());
                        asking.spawn(async move { (id, address, ask(&clients, &service, id, url).await) });
                    }
                }
            }
        }
    }
}

/// Whether the aircraft answers at that address; it is followed then.
async fn ask(
    clients: &Clients,
    service: &Service,
    id: VehicleId,
    url: Result<String, &'static str>,
) -> Result<(), String> {
    let address = url?;
    let identity = client::identity(clients, &address).await?;
    if identity.id != id.to_string() {
        return Err(format!("found the aircraft {} at its address, expected the sender", identity.id));
    }
    service.found(Found { address, id: identity.id }).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use wingbeat_wire::{Draft, FleetKey, Message, Point, Signer};

    use super::*;

    const FLEET: FleetKey = FleetKey([3; 32]);
    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7));
    const ELSEWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 66));

    fn signer(secret: u8) -> Signer {
        Signer::new(&[secret; 32], 1, FLEET)
    }

    /// Of two aircraft, 1 and 3, and the console 2; each secret is its id.
    fn roster() -> Box<Roster> {
        let mut roster = Box::new(Roster::new(1, FLEET));
        for (id, role) in [(1, Role::Aircraft), (2, Role::Operator), (3, Role::Aircraft)] {
            let key = signer(id).public_key().expect("a key");
            roster.add(VehicleId(u64::from(id)), role, &key).expect("room in the roster");
        }
        roster
    }

    fn datagram(from: u64, counter: u64, by: &Signer) -> Vec<u8> {
        let at = Point { latitude_e7: 394_800_000, longitude_e7: -3_400_000, height_mm: 0 };
        let mut draft = Draft::default();
        draft.write(VehicleId(from), counter, 0, &Message::Alive { at }).expect("it fits");
        by.seal(&mut draft).to_vec()
    }

    fn refused(senders: &Senders) -> Vec<(&'static str, u64)> {
        let all = Refused::ALL.iter().zip(senders.refused);
        all.filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.name(), count)).collect()
    }

    #[test]
    fn with_keys_only_what_an_aircraft_of_the_roster_signed_and_is_new_is_asked_about() {
        let now = Instant::now();
        let mut senders = Senders::new(roster(), now);
        let genuine = datagram(1, 10, &signer(1));
        let mut changed = genuine.clone();
        *changed.last_mut().expect("bytes") ^= 1;
        for (bytes, what) in [
            (datagram(9, 1, &Signer::insecure()), "without keys"),
            (datagram(1, 10, &Signer::new(&[1; 32], 2, FLEET)), "another epoch"),
            (datagram(1, 10, &Signer::new(&[1; 32], 1, FleetKey([4; 32]))), "another fleet"),
            (datagram(9, 10, &signer(9)), "in no roster"),
            (datagram(1, 10, &signer(3)), "a captured aircraft in another's name"),
            (changed, "changed"),
            (vec![], "empty"),
        ] {
            senders.take(now, ELSEWHERE, &bytes);
            assert_eq!(senders.next_to_ask(now), None, "{what}");
        }
        let expected = [
            ("empty", 1),
            ("version", 1),
            ("epoch", 1),
            ("fleet_tag", 2),
            ("unknown_sender", 1),
            ("signature", 1),
        ];
        assert_eq!(refused(&senders), expected);

        // A console's own are genuine, and it is no aircraft.
        senders.take(now, ELSEWHERE, &datagram(2, 10, &signer(2)));
        assert_eq!(senders.next_to_ask(now), None);
        senders.take(now, HERE, &genuine);
        assert_eq!(senders.next_to_ask(now), Some((VehicleId(1), HERE)));
        // A recording that comes from elsewhere moves no address.
        senders.take(now, ELSEWHERE, &genuine);
        senders.answered(now, VehicleId(1), HERE, Err("no answer in time".to_owned()));
        let later = now + ASK_EVERY;
        assert_eq!(senders.next_to_ask(now), None, "not before its time");
        assert_eq!(senders.next_to_ask(later), Some((VehicleId(1), HERE)));
        assert_eq!(refused(&senders).last(), Some(&("replayed", 1)));
        // One that really moved is asked there, whatever became of the asking before.
        senders.take(later, ELSEWHERE, &datagram(1, 11, &signer(1)));
        senders.answered(later, VehicleId(1), HERE, Ok(()));
        assert_eq!(senders.next_to_ask(later), Some((VehicleId(1), ELSEWHERE)));
        senders.answered(later, VehicleId(1), ELSEWHERE, Ok(()));
        assert_eq!(senders.next_to_ask(later + ASK_EVERY), None, "it is followed");
    }

    #[test]
    fn one_that_is_received_no_more_is_not_asked_and_a_flood_is_bounded() {
        let now = Instant::now();
        let mut senders = Senders::new(Box::new(Roster::insecure()), now);
        for id in 1..=2 * SENDERS_MAX as u64 {
            senders.take(now, HERE, &datagram(id, 1, &Signer::insecure()));
        }
        assert_eq!(senders.by_id.len(), SENDERS_MAX);
        assert_eq!(refused(&senders), [("no_room", SENDERS_MAX as u64)]);
        assert!(senders.next_to_ask(now).is_some());
        assert_eq!(senders.next_to_ask(now + RECEIVED_WITHIN), None);

        let mut senders = Senders::new(roster(), now);
        let forged = datagram(1, 10, &signer(3));
        for _ in 0..1_000 {
            senders.take(now, ELSEWHERE, &forged);
        }
        let checked = u64::from(CHECKS_MAX);
        assert_eq!(refused(&senders), [("signature", checked), ("storm", 1_000 - checked)]);
        let next = now + Duration::from_secs(1);
        senders.take(next, HERE, &datagram(1, 11, &signer(1)));
        assert_eq!(senders.next_to_ask(next), Some((VehicleId(1), HERE)), "the next second is a new one");
    }

    #[test]
    fn a_sender_that_is_known_costs_a_signature_a_second() {
        let now = Instant::now();
        let mut senders = Senders::new(roster(), now);
        for counter in 1..=50 {
            senders.take(now, HERE, &datagram(1, counter, &signer(1)));
        }
        assert_eq!(senders.checks.1, 1);
        assert_eq!(refused(&senders), []);
    }
}
