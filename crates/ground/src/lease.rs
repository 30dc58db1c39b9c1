//! Holding the lease of one aircraft: taken again each second for as long as the service follows it. While
//! it is held the aircraft sends its flight controller a ground station's heartbeat; when the service dies it
//! expires. What renews it is the token that the aircraft answered when it was taken.

use std::time::Duration;

use reqwest::Client;
use tokio::time::{MissedTickBehavior, interval};
use wingbeat_api::{FleetLeases, LeaseGrant, LeaseRequest, VehicleLease, paths};

use crate::client::{self, Method, Tokens};
use crate::links::Party;
use crate::parameters::{Asked, ask, each};

/// Between two renewals.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// Four renewals may be lost.
const TTL_MS: u64 = 5_000;
/// One attempt, the connection included; the next is then due anyway.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(2);

/// This service's name on the network, which aircraft show: the computer's and its port.
pub(crate) fn console(port: u16) -> String {
    let own = || wingbeat_server::machine_names().into_iter().next().unwrap_or_default();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_else(|_| own());
    // The aircraft takes 64 characters.
    let host: String = host.trim().chars().filter(|c| !c.is_control()).take(50).collect();
    format!("{}:{port}", if host.is_empty() { "ground" } else { &host })
}

/// Takes the lease and renews it until dropped. An aircraft that another console holds is asked again, and
/// shows in its status which that is.
pub(crate) async fn hold(client: Client, address: String, console: String, tokens: Tokens) {
    let mut logged = String::new();
    let mut tick = interval(RENEW_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        // Also that of a lease which the operator has taken over.
        let token = tokens.get(&address);
        let body = LeaseRequest { console: console.clone(), ttl_ms: TTL_MS, token, take_over: false };
        let request = client.post(format!("{address}{}", paths::LEASE)).json(&body).timeout(ATTEMPT_LIMIT);
        let answer = match request.send().await {
            Ok(mut response) if response.status().is_success() => match client::body(&mut response).await {
                Ok(body) => {
                    // Only the answer that gives the lease has one.
                    let grant = serde_json::from_slice::<LeaseGrant>(&body).ok();
                    if let Some(token) = grant.and_then(|grant| grant.token) {
                        tokens.keep(&address, &token);
                    }
                    String::new()
                }
                Err(why) => why,
            },
            Ok(mut response) => {
                let status = response.status();
                client::body(&mut response)
                    .await
                    .map_or_else(|why| why, |body| client::refusal(status, &body))
            }
            Err(error) => client::reason(&error),
        };
        if answer != logged {
            tracing::debug!(address, answer, "lease");
            logged = answer;
        }
    }
}

/// Takes the lease of each aircraft over from another console. [`hold`] renews it by the new token.
pub(crate) async fn take_over(all: Vec<Asked>, console: &str, tokens: &Tokens) -> FleetLeases {
    let of_one = |one: Asked| async move {
        let Party { id, address, token } = &one.party;
        let body = LeaseRequest {
            console: console.to_owned(),
            ttl_ms: TTL_MS,
            token: token.clone(),
            take_over: true,
        };
        let answer = ask::<_, LeaseGrant>(&one, Method::POST, paths::LEASE, Some(&body)).await;
        if let Some(token) = answer.as_ref().ok().and_then(|grant| grant.token.as_deref()) {
            tokens.keep(address, token);
        }
        VehicleLease { id: id.clone(), problem: answer.err() }
    };
    FleetLeases { vehicles: each(all, of_one).await }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    #[test]
    fn the_name_is_the_computers_and_fits() {
        let name = console(8_700);
        assert!(name.ends_with(":8700") && name.len() > 5 && name.chars().count() <= 64, "{name}");
    }

    #[tokio::test]
    async fn a_lease_that_another_holds_is_asked_for_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let holding = tokio::spawn(hold(
            client::new(None).expect("a client"),
            address,
            "one:1".to_owned(),
            Tokens::default(),
        ));
        let (granted, renewed) = (
            r#"{"console":"one:1","left_ms":5000,"token":"secret"}"#,
            r#"{"console":"one:1","left_ms":5000}"#,
        );
        for (answer, body, has_token) in [
            ("409 Conflict", "{}", false),
            ("500 Internal Server Error", "{}", false),
            ("200 OK", granted, false),
            ("200 OK", renewed, true),
            ("200 OK", renewed, true),
            ("503 Service Unavailable", "{}", true),
            ("200 OK", renewed, true),
        ] {
            let (mut stream, _) = listener.accept().await.expect("a request");
            let mut request = String::new();
            while !request.ends_with('}') {
                let mut buffer = [0; 1024];
                let length = stream.read(&mut buffer).await.expect("a request");
                request += &String::from_utf8_lossy(&buffer[..length]);
            }
            assert!(request.starts_with("POST /api/v1/lease ") && request.contains(r#""console":"one:1""#));
            assert_eq!(request.contains(r#""token":"secret""#), has_token, "{request}");
            let length = body.len();
            let reply =
                format!("HTTP/1.1 {answer}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            stream.write_all(reply.as_bytes()).await.expect("the service listens");
        }
        holding.abort();
    }
}
