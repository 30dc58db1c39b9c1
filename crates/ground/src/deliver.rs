//! Delivering one command to one aircraft: the same id again and again until it is answered, or, for a
//! recovery command, until the owner has seen its effect and stops the delivery; at last it expires.
//!
//! On a radio that loses packets an attempt waits: TCP sends a lost packet again after 200 ms at least, a lost SYN after a second, and
//! each after twice as long each further time (RFC 6298, sections 2 and 5). So the next attempt does not wait for the last one: it goes
//! over another connection. Of ten packets lost one, the first attempt is a quarter late, and of a fleet of fifty some aircraft.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use reqwest::{Client, StatusCode, header::CONTENT_TYPE};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use wingbeat_api::{ApiError, CommandReply, CommandRequest, VehicleOutcome, paths};
use wingbeat_console::Press;

use crate::client::{self, Tokens};
use crate::desk::Desk;
use crate::ledger::{self, Lane, NEXT_STEP};
use crate::owner::Message;

/// One attempt, the connection included.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(2);
/// An attempt without an answer is joined by another after so long: the first, which goes by the lease's open connection where there is
/// one, sooner than those that open their own.
const JOINED_AFTER: (Duration, Duration) = (Duration::from_millis(40), Duration::from_millis(80));
/// So many are under way at once.
const AT_ONCE: usize = 8;
/// Between attempts that failed.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// Between repetitions of a recovery command that was accepted.
const REPEAT_AFTER: Duration = Duration::from_secs(1);

/// A command on its way to one aircraft.
pub(crate) struct Delivery {
    pub(crate) client: Client,
    pub(crate) address: String,
    pub(crate) vehicle: String,
    pub(crate) press: Press,
    /// What signs it, where the console has keys.
    pub(crate) desk: Option<Arc<Desk>>,
    /// The tokens of the leases.
    pub(crate) tokens: Tokens,
    /// How long before it expires.
    pub(crate) limit: Duration,
    pub(crate) owner: mpsc::Sender<Message>,
}

/// What one attempt came to.
enum Answer {
    Accepted(String),
    Refused(String),
    /// The aircraft refuses it for now: try again.
    NotYet(String),
    /// Nothing that decides: try again.
    None(String),
}

impl Delivery {
    /// Delivers; ends when it is answered finally or has expired.
    pub(crate) async fn run(self) {
        let end = Instant::now() + self.limit;
        let recovery = ledger::lane(self.press.command) == Lane::Recovery;
        let mut last = "no answer".to_owned();
        let (mut accepted, mut refused) = (false, false);
        while Instant::now() < end {
            // An attempt that the end cuts off leaves the last reason as it is.
            let Ok(answer) = timeout_at(end, self.attempts()).await else { break };
            refused = matches!(answer, Answer::NotYet(_));
            let wait = match answer {
                Answer::Accepted(detail) => {
                    if !std::mem::replace(&mut accepted, true) {
                        self.report(VehicleOutcome::Accepted, detail).await;
                    }
                    if !recovery {
                        return;
                    }
                    REPEAT_AFTER
                }
                Answer::Refused(detail) => return self.report(VehicleOutcome::Failed, detail).await,
                Answer::NotYet(detail) | Answer::None(detail) => {
                    if !accepted && detail != last {
                        self.report(VehicleOutcome::Sending, format!("repeating: {detail}")).await;
                    }
                    last = detail;
                    RETRY_AFTER
                }
            };
            let _ = timeout_at(end, sleep(wait)).await;
        }
        let seconds = self.limit.as_secs();
        let detail = if accepted {
            format!("accepted, but its effect was not seen within {seconds} s; {NEXT_STEP}")
        } else if refused {
            // The reason has its own cure.
            format!("refused for {seconds} s: {last}")
        } else {
            format!("not answered within {seconds} s: {last}; {NEXT_STEP}")
        };
        self.report(VehicleOutcome::Expired, detail).await;
    }

    /// The first answer that decides, or the last one when all attempts have failed.
    async fn attempts(&self) -> Answer {
        let mut under_way = FuturesUnordered::from_iter([self.attempt()]);
        let mut joined_at = Instant::now() + JOINED_AFTER.0;
        loop {
            let answer = match under_way.len() {
                AT_ONCE.. => under_way.next().await,
                _ => match timeout_at(joined_at, under_way.next()).await {
                    Ok(answer) => answer,
                    Err(_) => {
                        under_way.push(self.attempt());
                        joined_at += JOINED_AFTER.1;
                        continue;
                    }
                },
            };
            match answer {
                Some(Answer::NotYet(_) | Answer::None(_)) if !under_way.is_empty() => {}
                Some(answer) => return answer,
                // There is one under way until it has answered.
                None => return Answer::None("no answer".to_owned()),
            }
        }
    }

    async fn attempt(&self) -> Answer {
        let url = |path| format!("{}{path}", self.address);
        let token = self.tokens.get(&self.address);
        let request = match &self.desk {
            // Each attempt with a counter of its own.
            Some(desk) => {
                let request =
                    self.client.post(url(paths::ORDERS)).header(CONTENT_TYPE, "application/octet-stream");
                request.body(desk.sealed(&self.press, &self.vehicle))
            }
            None => {
                let (id, command) = (self.press.id.as_str().to_owned(), self.press.command);
                self.client.post(url(paths::COMMANDS)).json(&CommandRequest { id, command })
            }
        };
        let request = client::with_lease(request, token);
        let mut response = match request.timeout(ATTEMPT_LIMIT).send().await {
            Ok(response) => response,
            Err(error) => return Answer::None(client::reason(&error)),
        };
        let status = response.status();
        let body = match client::body(&mut response).await {
            Ok(body) => body,
            Err(reason) => return Answer::None(reason),
        };
        let reply = serde_json::from_slice::<CommandReply>(&body).ok();
        match (status, reply) {
            (StatusCode::OK | StatusCode::ACCEPTED, Some(reply)) => {
                Answer::Accepted(format!("accepted in state {}", reply.state))
            }
            (StatusCode::OK | StatusCode::ACCEPTED, None) => {
                Answer::None("its answer is not a command's reply".to_owned())
            }
            (StatusCode::CONFLICT, Some(reply)) => {
                Answer::Refused(format!("refused in state {}: {}", reply.state, reply.reason))
            }
            // Another order of this console overtook it, its clock runs differently, or the lease is not held yet.
            (StatusCode::CONFLICT, None) if is_for_now(&body) => {
                if let Some(desk) = self.desk.as_ref().filter(|_| has_code(&body, "replayed")) {
                    desk.renew_session();
                }
                Answer::NotYet(client::refusal(status, &body))
            }
            (status, _)
                if status.is_client_error()
                    && status != StatusCode::REQUEST_TIMEOUT
                    && status != StatusCode::TOO_MANY_REQUESTS =>
            {
                Answer::Refused(client::refusal(status, &body))
            }
            (status, _) => Answer::NotYet(client::refusal(status, &body)),
        }
    }

    async fn report(&self, outcome: VehicleOutcome, detail: String) {
        let (id, vehicle) = (self.press.id.as_str().to_owned(), self.vehicle.clone());
        // The owner is gone: the service ends, and no task is left to report to.
        let _ = self.owner.send(Message::Delivered { id, vehicle, outcome, detail }).await;
    }
}

/// Whether the same order is taken later.
fn is_for_now(body: &[u8]) -> bool {
    has_code(body, "replayed") || has_code(body, "lease")
}

fn has_code(body: &[u8], code: &str) -> bool {
    serde_json::from_slice::<ApiError>(body).is_ok_and(|error| error.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use wingbeat_api::Command;

    /// Delivers to the server at that address and returns the reports.
    async fn deliver(address: String, command: Command, limit: Duration) -> Vec<(VehicleOutcome, String)> {
        let (owner, mut reports) = mpsc::channel(64);
        let vehicle = "000000000000000a".to_owned();
        let press = Press { id: "c".try_into().expect("an id"), command, flight: 0 };
        let client = client::new(None).expect("a client");
        Delivery { client, address, vehicle, press, desk: None, tokens: Tokens::default(), limit, owner }
            .run()
            .await;
        let mut out = Vec::new();
        while let Some(message) = reports.recv().await {
            if let Message::Delivered { outcome, detail, .. } = message {
                out.push((outcome, detail));
            }
        }
        out
    }

    #[tokio::test]
    async fn an_unanswered_command_expires_with_the_last_reason() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        drop(listener);
        let reports = deliver(address, Command::Setup, Duration::from_secs(1)).await;
        let expected = [
            (VehicleOutcome::Sending, "repeating: connection refused"),
            (
                VehicleOutcome::Expired,
                "not answered within 1 s: connection refused; check the state of the aircraft, then send the \
                 command again",
            ),
        ];
        assert_eq!(reports, expected.map(|(outcome, detail)| (outcome, detail.to_owned())));
    }

    #[tokio::test]
    async fn an_attempt_that_hangs_is_joined_by_another() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let aircraft = tokio::spawn(async move {
            // The first two connections take the request and are silent.
            let mut silent = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                if silent.len() < 2 {
                    silent.push(stream);
                    continue;
                }
                let body = r#"{"id":"c","outcome":"accepted","state":"Ready","reason":""}"#;
                let head = format!("HTTP/1.1 202 Accepted\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
                return silent.len();
            }
            0
        });
        let begun = Instant::now();
        let reports = deliver(address, Command::Setup, Duration::from_secs(30)).await;
        assert_eq!(reports, [(VehicleOutcome::Accepted, "accepted in state Ready".to_owned())]);
        assert_eq!(aircraft.await.expect("it answered"), 2);
        assert!(begun.elapsed() >= JOINED_AFTER.0 + JOINED_AFTER.1);
    }

    #[tokio::test]
    async fn a_command_that_is_refused_until_it_expires_is_not_called_unanswered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let aircraft = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let body = r#"{"code":"lease","message":"start: found the lease of console b"}"#;
                let answer = format!(
                    "HTTP/1.1 409 Conflict\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let reports = deliver(address, Command::Start, Duration::from_secs(1)).await;
        aircraft.abort();
        let expected = [
            (VehicleOutcome::Sending, "repeating: 409: start: found the lease of console b"),
            (VehicleOutcome::Expired, "refused for 1 s: 409: start: found the lease of console b"),
        ];
        assert_eq!(reports, expected.map(|(outcome, detail)| (outcome, detail.to_owned())));
    }

    #[tokio::test]
    async fn a_recovery_command_without_an_effect_expires_after_its_acceptance() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let aircraft = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let body = r#"{"id":"c","outcome":"accepted","state":"MovingToWaypoint","reason":""}"#;
                let answer = format!(
                    "HTTP/1.1 202 Accepted\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let reports = deliver(address, Command::Land, Duration::from_secs(1)).await;
        aircraft.abort();
        let expected = [
            (VehicleOutcome::Accepted, "accepted in state MovingToWaypoint"),
            (
                VehicleOutcome::Expired,
                "accepted, but its effect was not seen within 1 s; check the state of the aircraft, then send \
                 the command again",
            ),
        ];
        assert_eq!(reports, expected.map(|(outcome, detail)| (outcome, detail.to_owned())));
    }
}
