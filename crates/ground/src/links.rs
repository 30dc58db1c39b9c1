//! Links between aircraft: the matrix of every pair, and tests of a link.
//!
//! The matrix is asked of the aircraft only while a console asks for it, and the less often the more aircraft there are: its
//! answers share the radio channel with everything else. A test is begun at its receivers first and then at its sender, which
//! end it by themselves; what both recorded becomes the file that `wingbeat linktest report` reads.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use reqwest::Client;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use wingbeat_api::{
    FleetLinkTest, FleetLinks, LinkTestFlight, LinkTestReport, LinkTestRequest, LinkTestRow, LinkTestRows,
    Links, MissingLinks, paths,
};
use wingbeat_geo::{DVec3, Position};
use wingbeat_linktest::{Flight, Record, Test};

use crate::base_address;
use crate::client::{self, Clients, Method};
use crate::refused::Refused;
use crate::remote::{Fault, Remote};

/// The matrix is asked for no more often,
const REFRESH_LEAST: Duration = Duration::from_secs(2);
/// and of many aircraft so much later for each: 10 s for 100, whose answers of 10 kB are then an eighth of the air.
const REFRESH_EACH: Duration = Duration::from_millis(100);
/// Aircraft that are asked at the same time.
const AT_ONCE: usize = 64;
/// Between two looks at a test that runs.
const WATCH_PERIOD: Duration = Duration::from_secs(1);
/// A sender that has not answered for so long after the test's end is given up.
const ANSWER_AFTER: Duration = Duration::from_secs(15);
/// Receivers of one test, as aircraft take it.
pub(crate) const RECEIVERS_MAX: usize = 16;
/// A receiver's place is taken from a row at most so old, milliseconds.
const TRACK_AGE_MAX_MS: i64 = 1_000;

/// An aircraft's API.
#[derive(Clone, Debug)]
pub(crate) struct Party {
    pub(crate) id: String,
    pub(crate) address: String,
    /// Of the lease, where there is one.
    pub(crate) token: Option<String>,
}

/// What the service keeps of links.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    matrix: Mutex<Option<(Instant, FleetLinks)>>,
    test: Mutex<Option<(Instant, LinkTest)>>,
}

impl Desk {
    /// The matrix of these aircraft, as fresh as it may be.
    pub(crate) async fn matrix(&self, client: &Client, aircraft: Vec<(String, String)>) -> FleetLinks {
        let mut kept = self.matrix.lock().await;
        let refresh = REFRESH_LEAST.max(REFRESH_EACH * u32::try_from(aircraft.len()).unwrap_or(u32::MAX));
        let age = |at: &Instant| at.elapsed();
        if kept.as_ref().is_none_or(|(at, _)| age(at) >= refresh) {
            let asked = stream::iter(aircraft).map(|(id, address)| async move {
                (id, client::get::<Links>(client, &address, paths::LINKS).await)
            });
            let answers: Vec<_> = asked.buffered(AT_ONCE).collect().await;
            let mut links = FleetLinks::default();
            for (id, answer) in answers {
                match answer {
                    Ok(answer) => links.aircraft.push(answer),
                    Err(reason) => links.missing.push(MissingLinks { id, reason }),
                }
            }
            *kept = Some((Instant::now(), links));
        }
        let mut links = kept.as_ref().map(|(_, links)| links.clone()).unwrap_or_default();
        links.age_ms = kept.as_ref().map_or(0, |(at, _)| age(at).as_millis() as u64);
        drop(kept);
        links.test = self.test.lock().await.as_ref().map(|(_, test)| test.number());
        links
    }

    /// Begins a test, where no other of this service runs.
    pub(crate) async fn begin(&self, test: LinkTest) -> Result<FleetLinkTest, Refused> {
        let mut kept = self.test.lock().await;
        if let Some((until, running)) = kept.as_ref().filter(|(until, _)| Instant::now() < *until) {
            let (number, left) = (running.number(), until.saturating_duration_since(Instant::now()));
            let left = left.as_secs() + 1;
            return Err(Refused::conflict(format!(
                "link test: found test {number} running for {left} s more, expected none"
            )));
        }
        if let Some((_, old)) = &*kept {
            // Its receivers wait a little for what is on its way.
            old.end().await;
        }
        test.begin().await?;
        let until = Instant::now() + Duration::from_secs(test.request.seconds.into());
        let report = test.report().await;
        *kept = Some((until, test));
        Ok(report)
    }

    /// Ends the test that runs.
    pub(crate) async fn end(&self) -> Result<FleetLinkTest, Refused> {
        let mut kept = self.test.lock().await;
        let (until, test) = kept.as_mut().ok_or_else(no_test)?;
        test.end().await;
        *until = Instant::now();
        Ok(test.report().await)
    }

    /// The test that runs, or the last.
    pub(crate) async fn test(&self) -> Result<LinkTest, Refused> {
        self.test.lock().await.as_ref().map(|(_, test)| test.clone()).ok_or_else(no_test)
    }
}

fn no_test() -> Refused {
    Refused::not_found("no link test since this service started".to_owned())
}

/// A test, with the aircraft that take part.
#[derive(Clone, Debug)]
pub(crate) struct LinkTest {
    client: Client,
    request: LinkTestRequest,
    sender: Party,
    receivers: Vec<Party>,
}

impl LinkTest {
    /// A test between these aircraft; it is given a number where it has none.
    pub(crate) fn new(
        client: Client,
        mut request: LinkTestRequest,
        sender: Party,
        receivers: Vec<Party>,
    ) -> Self {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
        // Another one each second, which is shorter than any test.
        let number = since_1970.map_or(1, |since| since.as_secs() as u32).max(1);
        request.number = request.number.or(Some(number));
        Self { client, request, sender, receivers }
    }

    fn number(&self) -> u32 {
        self.request.number.unwrap_or(0)
    }

    /// Receivers first: what is sent before they record is lost. One that refuses ends it for all.
    async fn begin(&self) -> Result<(), Refused> {
        let answers = join_all(self.receivers.iter().map(|party| self.begin_at(party))).await;
        let record = self.receivers.iter().zip(&answers).filter(|(_, answer)| answer.is_ok());
        let recording: Vec<&Party> = record.map(|(party, _)| party).collect();
        let mut begun = answers.into_iter().collect::<Result<(), _>>();
        if begun.is_ok() {
            begun = self.begin_at(&self.sender).await;
        }
        if begun.is_err() {
            // Those that did not begin may run another test.
            join_all(recording.into_iter().map(|party| self.end_at(party))).await;
        }
        begun
    }

    async fn begin_at(&self, party: &Party) -> Result<(), Refused> {
        let Party { id, address, token } = party;
        let answer = client::ask(
            &self.client,
            Method::POST,
            address,
            paths::LINK_TEST,
            Some(&self.request),
            token.clone(),
        );
        let (status, body) = answer.await.map_err(|why| Refused::unavailable(format!("{id}: {why}")))?;
        if status.is_success() {
            return Ok(());
        }
        let why = client::sentence(status, &body);
        Err(Refused::answered(status.as_u16(), format!("{id}: {why}")))
    }

    async fn end(&self) {
        let all = std::iter::once(&self.sender).chain(&self.receivers);
        join_all(all.map(|party| self.end_at(party))).await;
    }

    /// Only this test; one that does not answer ends by itself.
    async fn end_at(&self, party: &Party) {
        if self.report_of(party).await.is_none_or(|report| report.ended.is_some()) {
            return;
        }
        let address = &party.address;
        let request = client::ask(&self.client, Method::DELETE, address, paths::LINK_TEST, None::<&()>, None);
        drop(request.await);
    }

    /// What each aircraft answers now.
    pub(crate) async fn report(&self) -> FleetLinkTest {
        let all = std::iter::once(&self.sender).chain(&self.receivers);
        let mut reports = join_all(all.map(|party| self.report_of(party))).await.into_iter();
        FleetLinkTest {
            test: self.request.clone(),
            sender: reports.next().flatten(),
            receivers: reports.collect(),
        }
    }

    async fn report_of(&self, party: &Party) -> Option<LinkTestReport> {
        let report: LinkTestReport =
            client::get(&self.client, &party.address, paths::LINK_TEST).await.ok()?;
        (report.test.number == self.request.number).then_some(report)
    }

    /// What was sent to a receiver and what it received of it.
    ///
    /// # Errors
    /// It is no receiver of this test, or does not answer.
    pub(crate) async fn record(&self, receiver: &str) -> Result<Record, Refused> {
        let party = self.receivers.iter().find(|party| party.id == receiver).ok_or_else(|| {
            let expected = self.request.receivers.join(", ");
            Refused::bad_request(format!("receiver: found {receiver:?}, expected one of {expected}"))
        })?;
        let (received, sent) = tokio::join!(self.report_of(party), self.report_of(&self.sender));
        let missing =
            |id: &str| Refused::unavailable(format!("{id}: no answer about link test {}", self.number()));
        let received_at = received.ok_or_else(|| missing(receiver))?.elapsed_ms;
        let rows =
            self.rows(party).await.map_err(|why| Refused::unavailable(format!("{receiver}: {why}")))?;
        let (sent_at, count, sender_rows) = match sent {
            // Out of reach: what it recorded is left out, and what it sent is what it was asked for.
            None => {
                let LinkTestRequest { rate_hz, seconds, .. } = self.request;
                (received_at, (rate_hz * f64::from(seconds)).round() as u32, vec![])
            }
            Some(sent) => (sent.elapsed_ms, sent.count, self.rows(&self.sender).await.unwrap_or_default()),
        };
        let test = Test {
            number: self.number(),
            from: self.request.sender.clone(),
            to: receiver.to_owned(),
            count,
            rate_hz: self.request.rate_hz,
            payload_bytes: self.request.payload_bytes,
        };
        // By how much the receiver's clock is ahead of the sender's: both began at their own zero.
        let ahead_ms = signed(received_at) - signed(sent_at);
        Ok(merge(test, &rows, &sender_rows, ahead_ms))
    }

    async fn rows(&self, party: &Party) -> Result<Vec<LinkTestRow>, String> {
        let (mut rows, mut from) = (vec![], Some(0));
        while let Some(first) = from {
            let path = format!("{}?from={first}", paths::LINK_TEST_ROWS);
            let part: LinkTestRows = client::get(&self.client, &party.address, &path).await?;
            if Some(part.number) != self.request.number {
                return Err(format!("found test {}, expected {}", part.number, self.number()));
            }
            rows.extend(part.rows);
            // A part that leads nowhere would be asked for ever.
            from = part.next.filter(|next| *next > first);
        }
        Ok(rows)
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// One record of what both aircraft recorded; rows in order of time.
fn merge(test: Test, received: &[LinkTestRow], sent: &[LinkTestRow], ahead_ms: i64) -> Record {
    let mut record = Record::new(test);
    for row in received {
        let own_word = || sent.iter().find(|s| s.sequence == row.sequence).map(|s| s.own);
        let Some(sequence) = row.sequence else { continue };
        if let Some(sender) = row.sender.or_else(own_word) {
            record.add(sequence, flight(&sender), flight(&row.own));
        }
    }
    for row in sent {
        let Some(sequence) = row.sequence else { continue };
        let at_ms = signed(row.time_ms).saturating_add(ahead_ms);
        // The receiver at that time, by its last row before.
        let before = received.partition_point(|r| signed(r.time_ms) <= at_ms);
        let place = before.checked_sub(1).and_then(|i| received.get(i));
        if let Some(place) = place.filter(|place| at_ms - signed(place.time_ms) <= TRACK_AGE_MAX_MS) {
            record.note(sequence, flight(&row.own), flight(&place.own));
        }
    }
    record
}

fn flight(f: &LinkTestFlight) -> Flight {
    // What an aircraft reports lies on the earth; if it does not, it is nowhere near the other.
    let position = Position::from_degrees(f.latitude_deg, f.longitude_deg, f.altitude_m).unwrap_or_default();
    let velocity_m_s = DVec3::new(f.east_m_s, f.north_m_s, f.up_m_s);
    Flight { position, heading_rad: f.heading_deg.to_radians(), velocity_m_s }
}

/// How a program reaches the aircraft of a test.
#[derive(Clone, Debug)]
pub enum Reach {
    /// Through a ground service, which holds their leases.
    Ground(Remote),
    /// Directly, by the addresses of their APIs.
    Aircraft(Vec<String>),
}

/// Runs a test from its beginning to its end and fetches what was recorded: for each receiver its record's file. `watch` is
/// called each second with how far it has come.
///
/// # Errors
/// An address that is none, an aircraft that refuses, does not take part or does not answer.
pub async fn run_link_test(
    reach: Reach,
    request: LinkTestRequest,
    mut watch: impl FnMut(&FleetLinkTest),
) -> Result<Vec<(String, String)>, Refused> {
    let receivers = request.receivers.clone();
    let access = Access::begin(reach, request).await?;
    let begun = Instant::now();
    let test = loop {
        let now = access.report().await?;
        watch(&now);
        if now.sender.as_ref().is_some_and(|sender| sender.ended.is_some()) {
            break now;
        }
        if begun.elapsed() > Duration::from_secs(now.test.seconds.into()) + ANSWER_AFTER {
            break now;
        }
        sleep(WATCH_PERIOD).await;
    };
    // The last datagrams are on their way.
    sleep(WATCH_PERIOD).await;
    let mut files = vec![];
    for receiver in receivers {
        let file = access.file(&receiver).await?;
        files.push((receiver, file));
    }
    if let Access::Aircraft(test) = &access {
        test.end().await;
    }
    match test.sender.and_then(|sender| sender.ended) {
        Some(_) => Ok(files),
        None => Err(Refused::unavailable(format!("{}: no answer at the end of the test", test.test.sender))),
    }
}

enum Access {
    Ground(Remote),
    Aircraft(LinkTest),
}

impl Access {
    async fn begin(reach: Reach, request: LinkTestRequest) -> Result<Self, Refused> {
        let base = |found: &str| {
            base_address(found, "http").map_err(|why| {
                let expected = "HOST:PORT or http://HOST:PORT";
                Refused::bad_request(format!("aircraft address {found:?}: {why}; expected {expected}"))
            })
        };
        match reach {
            Reach::Ground(service) => {
                service.ask(Method::POST, paths::FLEET_LINK_TEST, Some(&request)).await.map_err(passed_on)?;
                Ok(Self::Ground(service))
            }
            Reach::Aircraft(addresses) => {
                let clients = Clients::new(None)
                    .map_err(|error| Refused::unavailable(format!("no HTTP client: {error}")))?;
                let mut parties = vec![];
                for address in addresses {
                    let address = base(&address)?;
                    let identity = client::identity(&clients, &address).await;
                    let id = identity.map_err(|why| Refused::unavailable(format!("{address}: {why}")))?.id;
                    parties.push(Party { id, address, token: None });
                }
                let locate = |id: &String| {
                    let party = parties.iter().find(|party| party.id == *id).cloned();
                    party.ok_or_else(|| {
                        let found: Vec<&str> = parties.iter().map(|party| &*party.id).collect();
                        let found = found.join(", ");
                        Refused::not_found(format!("aircraft: found {found}, expected {id} among them"))
                    })
                };
                let sender = locate(&request.sender)?;
                let receivers = request.receivers.iter().map(locate).collect::<Result<_, _>>()?;
                let test = LinkTest::new(clients.any().clone(), request, sender, receivers);
                test.begin().await?;
                Ok(Self::Aircraft(test))
            }
        }
    }

    async fn report(&self) -> Result<FleetLinkTest, Refused> {
        match self {
            Self::Ground(service) => service.get(paths::FLEET_LINK_TEST).await.map_err(passed_on),
            Self::Aircraft(test) => Ok(test.report().await),
        }
    }

    async fn file(&self, receiver: &str) -> Result<String, Refused> {
        match self {
            Self::Ground(service) => {
                let path = format!("{}?receiver={receiver}", paths::FLEET_LINK_TEST_FILE);
                let file = service.ask(Method::GET, &path, None::<&()>).await.map_err(passed_on)?;
                Ok(file.text())
            }
            Self::Aircraft(test) => Ok(test.record(receiver).await?.to_csv()),
        }
    }
}

/// A ground service's refusal, as it is.
fn passed_on(fault: Fault) -> Refused {
    match fault {
        Fault::Refused { status, message, .. } => Refused::answered(status, message),
        Fault::Input(why) | Fault::NotReached(why) | Fault::Unanswered(why) => Refused::unavailable(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight_at(longitude_deg: f64) -> LinkTestFlight {
        LinkTestFlight {
            latitude_deg: 39.48,
            longitude_deg,
            altitude_m: 50.0,
            heading_deg: 90.0,
            east_m_s: 5.0,
            north_m_s: 0.0,
            up_m_s: 0.0,
        }
    }

    fn row(sequence: Option<u32>, time_ms: u64, own: f64, sender: Option<f64>) -> LinkTestRow {
        LinkTestRow { sequence, time_ms, own: flight_at(own), sender: sender.map(flight_at) }
    }

    #[test]
    fn what_was_lost_lies_where_both_aircrafts_own_records_say() {
        let test =
            Test { number: 7, from: "1".into(), to: "2".into(), count: 5, rate_hz: 10.0, payload_bytes: 500 };
        let sent: Vec<_> =
            (0..5).map(|n| row(Some(n), u64::from(n) * 100, f64::from(n) * 0.001, None)).collect();
        // The receiver began two seconds before, and does not move but once.
        let received = [
            row(None, 1_900, 0.01, None),
            row(Some(1), 2_101, 0.01, Some(0.001)),
            row(Some(2), 2_202, 0.01, None),
            row(None, 2_250, 0.02, None),
            row(Some(9), 2_260, 0.02, Some(0.0)),
        ];
        let record = merge(test, &received, &sent, 2_000);
        let known: Vec<_> = record
            .known()
            .map(|(n, r)| {
                (n, r.copies, (r.receiver.position.longitude_e7 / 10_000), r.sender.position.longitude_e7)
            })
            .collect();
        assert_eq!(
            known,
            [(0, 0, 10, 0), (1, 1, 10, 10_000), (2, 1, 10, 20_000), (3, 0, 20, 30_000), (4, 0, 20, 40_000)]
        );
        assert_eq!(Record::from_csv(&record.to_csv()).map(|r| r.receptions().count()), Ok(2));
    }
}
