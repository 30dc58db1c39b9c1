//! The console's keys and its radio: orders are signed here, over HTTP and by radio with one counter, and the radio repeats
//! an emergency command until each aircraft has carried it out, beside the deliveries over HTTP.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::sleep_until;
use wingbeat_api::{Command, VehicleId};
use wingbeat_console::{Answer, Console, Press};
use wingbeat_geo::Instant;
use wingbeat_keys::{ConsoleKeys, counter::Reserve, folder};
use wingbeat_link::{Endpoint, Link, LinkEvent};
use wingbeat_radio::{Budget, Clock, Outage, Radio, RadioEvent, SendError};
use wingbeat_wire::{Addressees, Claim, Class, Corrections, Refused};

use crate::base_station::BaseStation;
use crate::ledger::{self, Lane};
use crate::owner::Message;

/// A step of the clock by this begins another session of orders: aircraft refuse those that are 2 s late.
const SESSION_STEP_US: u64 = 1_000_000;

/// Least time between two sessions that are begun because an aircraft calls orders too old.
///
/// An aircraft knows four sessions of a console. A captured aircraft that calls every order too old
/// makes the others forget a session after three times this period. Its orders are then older than
/// the 10 min for which an unknown session counts, so that no recording of them is obeyed.
const RENEW_EVERY: wingbeat_geo::Duration = wingbeat_geo::Duration::from_secs(200);

/// What a console signs with.
#[derive(Clone, Debug)]
pub struct ConsoleConfig {
    /// Its id, its role and its keys.
    pub keys: ConsoleKeys,
    /// Its clock: that of the aircraft, or one that runs alike.
    pub clock: Clock,
    /// The folder of its keys, which it locks, and where it keeps how far its counters have come. A bench has none.
    pub state: Option<PathBuf>,
    /// Its base station, whose corrections (RTCM 3) it broadcasts by its radio.
    pub rtcm: Option<Endpoint>,
}

impl ConsoleConfig {
    /// Takes the key folder, which no other service on this computer uses, until the file is dropped.
    pub(crate) fn lock(&self) -> Result<Option<File>, String> {
        let cure = "expected one service for each key folder; cure: end the other one, or enrol a second console with a \
                    key of its own (docs/operating.md, Keys)";
        self.state.as_deref().map_or(Ok(None), |folder| folder::lock(folder, "wingbeat ground", cure))
    }

    /// What it speaks TLS with.
    pub(crate) fn identity(&self) -> Option<wingbeat_tls::Identity> {
        wingbeat_tls::Identity::new(&self.keys.keys.signer, &self.keys.keys.roster)
    }
}

/// The console as a sender.
pub(crate) struct Desk {
    clock: Clock,
    has_radio: bool,
    base_station: Option<BaseStation>,
    inner: Mutex<Inner>,
    /// Something is to be sent by radio.
    wake: Notify,
}

struct Inner {
    console: Console,
    /// UTC at time zero of the clock, by which the session counts its orders; 0 before there is one.
    session_base_us: u64,
    /// When an aircraft last was the reason of a new session.
    renewed_at: Option<Instant>,
    keys: ConsoleKeys,
    reserve: Reserve,
    /// What corrections may take of the air.
    budget: Budget,
    /// Of each aircraft's newest datagram that was opened: a recording costs no signature.
    newest: BTreeMap<wingbeat_wire::VehicleId, u64>,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("has_radio", &self.has_radio).finish_non_exhaustive()
    }
}

impl Desk {
    /// Makes the console of these keys.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn new(config: ConsoleConfig, has_radio: bool) -> Result<Self, String> {
        let ConsoleConfig { keys, clock, state, rtcm } = config;
        let reserve = Reserve::open(state.as_deref(), unix_us());
        if let Some(problem) = reserve.problem() {
            tracing::error!("{problem}");
        }
        let console = Console::new(keys.id, reserve.base_us());
        let (budget, newest) = (Budget::default(), BTreeMap::new());
        let session_base_us = 0;
        let renewed_at = None;
        let inner = Mutex::new(Inner { console, session_base_us, renewed_at, keys, reserve, budget, newest });
        let base_station = rtcm.map(|source| BaseStation::new(source, clock));
        let desk = Self { clock, has_radio, base_station, inner, wake: Notify::new() };
        desk.lock().keep_session(clock).map_err(|error| format!("random numbers: found {error}"))?;
        Ok(desk)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the console to send orders: in a new session where the clock was set, or the computer slept.
    fn lock_to_order(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.lock();
        if let Err(error) = inner.keep_session(self.clock) {
            tracing::error!("the session of orders goes on although the clock was set: {error}");
        }
        inner
    }

    /// Begins another session of orders where an aircraft calls them too old. The clock of this
    /// computer has run slower than the aircraft's, as while it is corrected gradually; the first
    /// order of a session is judged without that difference.
    pub(crate) fn renew_session(&self) {
        let (mut inner, now) = (self.lock(), self.clock.now());
        if inner.renewed_at.is_some_and(|at| now.since(at) < RENEW_EVERY) {
            return;
        }
        inner.renewed_at = Some(now);
        match inner.begin_session(self.clock) {
            Ok(()) => tracing::warn!("an aircraft calls orders too old: a new session of orders begins"),
            Err(error) => {
                tracing::error!("the session of orders goes on although aircraft refuse it: {error}")
            }
        }
    }

    /// An order for one aircraft over HTTP; an exclusion is for all, and the aircraft passes it on.
    pub(crate) fn sealed(&self, press: &Press, vehicle: &str) -> Vec<u8> {
        let to = match (press.command, VehicleId::from_hexadecimal(vehicle)) {
            (Command::Exclude { .. }, _) | (_, None) => Addressees::All,
            (_, Some(id)) => Addressees::Listed([id].into_iter().collect()),
        };
        let now = self.clock.now();
        let mut inner = self.lock_to_order();
        let mut draft = inner.console.draft(now, press, to);
        inner.keep_ahead();
        inner.keys.keys.signer.seal(&mut draft).to_vec()
    }

    /// Repeats an order by radio, where there is one and the command does not need the lease.
    pub(crate) fn begin(&self, press: &Press, vehicle: &str, limit: Duration) {
        let Some(vehicle) = VehicleId::from_hexadecimal(vehicle) else { return };
        if self.has_radio && !press.command.needs_lease() {
            let now = self.clock.now();
            // The limit is the operator's time, whatever speed a bench's clock has.
            self.lock_to_order().console.begin(now, press, vehicle, now + limit.mul_f64(self.clock.speed()));
            self.wake.notify_one();
        }
    }

    /// What is in that lane of the aircraft is no longer repeated.
    pub(crate) fn stop(&self, vehicle: &str, lane: Lane) {
        if let Some(vehicle) = VehicleId::from_hexadecimal(vehicle) {
            self.lock().console.end(vehicle, |press| ledger::lane(press.command) == lane);
        }
    }

    /// An order is no longer repeated for an aircraft: it was answered finally.
    pub(crate) fn end(&self, id: &str, vehicle: &str) {
        if let Some(vehicle) = VehicleId::from_hexadecimal(vehicle) {
            self.lock().console.end(vehicle, |press| press.id == id);
        }
    }

    /// Sends what is due; when something is again.
    fn poll(&self, mut send: impl FnMut(&[u8])) -> Instant {
        let now = self.clock.now();
        let mut inner = self.lock_to_order();
        let Inner { console, keys, .. } = &mut *inner;
        console.poll(now, |draft| send(keys.keys.signer.seal(draft)));
        inner.keep_ahead();
        inner.console.poll_timeout()
    }

    /// An aircraft's answer, by its signed datagram.
    fn receive(&self, datagram: &[u8]) -> Option<Answer> {
        let mut inner = self.lock();
        let Inner { console, keys, newest, .. } = &mut *inner;
        let is_newer = |claim: &Claim| match newest.get(&claim.from) {
            Some(last) if claim.counter <= *last => Err(Refused::Replayed),
            Some(_) | None => Ok(()),
        };
        let opened = keys.keys.roster.open_if(datagram, is_newer).ok()?;
        // Only those of the roster come here.
        newest.insert(opened.from(), opened.counter());
        console.on_datagram(&opened)
    }

    /// Broadcasts a base station's frame, once.
    fn correct<R: Radio>(&self, corrections: &Corrections, radio: &R) -> Result<(), SendError> {
        let now = self.clock.now();
        let mut inner = self.lock();
        let mut draft = inner.console.corrections(now, corrections.clone());
        inner.keep_ahead();
        let Inner { keys, budget, .. } = &mut *inner;
        let sealed = keys.keys.signer.seal(&mut draft);
        budget.take(now, Class::Corrections, sealed.len())?;
        radio.send(Class::Corrections, sealed)
    }

    /// What is known of the base station.
    pub(crate) fn base_station(&self) -> Option<wingbeat_api::BaseStation> {
        self.base_station.as_ref().map(BaseStation::shown)
    }

    /// Broadcasts until the radio has ended. Emergencies that are due leave before each frame of the base station.
    pub(crate) async fn broadcast<R: Radio>(&self, mut radio: R, owner: mpsc::Sender<Message>) {
        let mut outage = Outage::default();
        let mut base = self.base_station.as_ref().map(|base| (base, base.open()));
        radio.screen(self.lock().keys.keys.roster.screen());
        loop {
            let next = self.poll(|sealed| {
                let now = self.clock.now();
                match radio.send(Class::Emergency, sealed) {
                    Ok(()) => outage.left(now).inspect(|line| tracing::info!("{line}")),
                    Err(error) => outage.failed(now, &error).inspect(|line| tracing::warn!("{line}")),
                };
            });
            tokio::select! {
                () = sleep_until(self.clock.kernel(next)) => {}
                () = self.wake.notified() => {}
                Some((base, event)) = heard(&mut base) => base.take(event, |frame| self.correct(frame, &radio)),
                event = radio.recv() => match event {
                    Some(RadioEvent::Datagram { bytes: datagram, .. }) => {
                        let Some(answer) = self.receive(&datagram) else { continue };
                        if owner.send(Message::Answered(answer)).await.is_err() {
                            return;
                        }
                    }
                    Some(RadioEvent::Up) => tracing::info!("the console's radio is up"),
                    Some(RadioEvent::Down { reason }) => tracing::warn!("{reason}"),
                    None => return tracing::error!("the console's radio has ended"),
                },
            }
        }
    }
}

/// What comes of the base station, where there is one.
async fn heard<'a>(base: &mut Option<(&'a BaseStation, Link)>) -> Option<(&'a BaseStation, LinkEvent)> {
    let (base, link) = base.as_mut()?;
    Some((*base, link.recv().await?))
}

/// UTC, microseconds after 1970.
fn unix_us() -> u64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since_1970.map_or(0, |since| since.as_micros() as u64)
}

impl Inner {
    /// Begins a session of orders with a random number; a new one where UTC is no longer where the clock expects it. The clock
    /// stands while the computer sleeps: aircraft would refuse orders of the old session as delayed.
    fn keep_session(&mut self, clock: Clock) -> io::Result<()> {
        let base_us = unix_us().saturating_sub(clock.now().as_micros());
        // A bench's clock may be faster than UTC.
        let is_kept = clock.speed() != 1.0 || base_us.abs_diff(self.session_base_us) < SESSION_STEP_US;
        if self.session_base_us != 0 && is_kept {
            return Ok(());
        }
        self.begin_session(clock)
    }

    /// Begins a session with a random number, counted by UTC.
    fn begin_session(&mut self, clock: Clock) -> io::Result<()> {
        let base_us = unix_us().saturating_sub(clock.now().as_micros());
        let random = wingbeat_keys::file::random()?;
        let [a, b, c, d, ..] = random;
        let number = NonZeroU32::new(u32::from_le_bytes([a, b, c, d])).unwrap_or(NonZeroU32::MIN);
        self.console.begin_session(number, base_us);
        self.session_base_us = base_us.max(1);
        Ok(())
    }

    /// No counter is used again after a restart.
    fn keep_ahead(&mut self) {
        if let Some(problem) = self.reserve.keep_ahead(self.console.counter()) {
            tracing::error!("{problem}");
        }
    }
}
