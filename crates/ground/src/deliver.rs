//! Delivering one command to one aircraft: the same id again and again until it is answered, or, for a
//! recovery command, until the owner has seen its effect and stops the delivery; at last it expires.

use std::time::Duration;

use reqwest::{Client, StatusCode};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use wingbeat_api::{Command, CommandReply, CommandRequest, VehicleOutcome, paths};

use crate::client;
use crate::ledger::{self, Lane};
use crate::owner::Message;

/// One attempt, the connection included.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(2);
/// Between attempts while there is no answer.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// Between repetitions of a recovery command that was accepted.
const REPEAT_AFTER: Duration = Duration::from_secs(1);

/// A command on its way to one aircraft.
pub(crate) struct Delivery {
    pub(crate) client: Client,
    pub(crate) address: String,
    pub(crate) vehicle: String,
    pub(crate) id: String,
    pub(crate) command: Command,
    /// How long before it expires.
    pub(crate) limit: Duration,
    pub(crate) owner: mpsc::Sender<Message>,
}

/// What one attempt came to.
enum Answer {
    Accepted(String),
    Refused(String),
    /// Nothing that decides: try again.
    None(String),
}

impl Delivery {
    /// Delivers; ends when it is answered finally or has expired.
    pub(crate) async fn run(self) {
        let end = Instant::now() + self.limit;
        let recovery = ledger::lane(self.command) == Lane::Recovery;
        let mut last = "no answer".to_owned();
        let mut accepted = false;
        while Instant::now() < end {
            let answer = timeout_at(end, self.attempt()).await.unwrap_or_else(|_| Answer::None(last.clone()));
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
                Answer::None(detail) => {
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
            format!("accepted, but its effect was not seen within {seconds} s")
        } else {
            format!("not answered within {seconds} s: {last}")
        };
        self.report(VehicleOutcome::Expired, detail).await;
    }

    async fn attempt(&self) -> Answer {
        let body = CommandRequest { id: self.id.clone(), command: self.command };
        let request = self.client.post(format!("{}{}", self.address, paths::COMMANDS)).json(&body);
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
            (status, _)
                if status.is_client_error()
                    && status != StatusCode::REQUEST_TIMEOUT
                    && status != StatusCode::TOO_MANY_REQUESTS =>
            {
                Answer::Refused(client::refusal(status, &body))
            }
            (status, _) => Answer::None(client::refusal(status, &body)),
        }
    }

    async fn report(&self, outcome: VehicleOutcome, detail: String) {
        let (id, vehicle) = (self.id.clone(), self.vehicle.clone());
        // The owner is gone: the service ends, and no task is left to report to.
        let _ = self.owner.send(Message::Delivered { id, vehicle, outcome, detail }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Delivers to the server at that address and returns the reports.
    async fn deliver(address: String, command: Command, limit: Duration) -> Vec<(VehicleOutcome, String)> {
        let (owner, mut reports) = mpsc::channel(64);
        let (vehicle, id) = ("000000000000000a".to_owned(), "c".to_owned());
        let client = client::new().expect("a client");
        Delivery { client, address, vehicle, id, command, limit, owner }.run().await;
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
            (VehicleOutcome::Expired, "not answered within 1 s: connection refused"),
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
            (VehicleOutcome::Expired, "accepted, but its effect was not seen within 1 s"),
        ];
        assert_eq!(reports, expected.map(|(outcome, detail)| (outcome, detail.to_owned())));
    }
}
