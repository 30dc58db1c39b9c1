//! Asking one aircraft over HTTP. Every call ends: in an answer of bounded size or a reason as text.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) use reqwest::Method;
use reqwest::{Client, RequestBuilder, Response, StatusCode, tls::TlsInfo};
use serde::{Serialize, de::DeserializeOwned};
use wingbeat_api::{AircraftStatus, ApiError, Identity, MissionUpload, paths};
use wingbeat_tls::{Why, why};
use wingbeat_wire::VehicleId;

/// A radio link to an aircraft either answers soon or is tried again.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// For a small answer, the connection included.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(3);
/// For a mission: the aircraft answers once it has taken it.
const MISSION_LIMIT: Duration = Duration::from_secs(10);
/// More than any answer of an aircraft needs.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The client for all aircraft: by TLS where there are keys, without where there are none, and straight to the aircraft
/// whatever proxy the operator's computer has.
pub(crate) fn new(keys: Option<&wingbeat_tls::Identity>) -> Result<Client, NoClient> {
    build(keys, None)
}

/// As [`new`], for one aircraft: with keys no other is spoken to, whatever answers at its address.
pub(crate) fn only(keys: Option<&wingbeat_tls::Identity>, id: &str) -> Result<Client, NoClient> {
    let id = VehicleId::from_hexadecimal(id).ok_or_else(|| NoClient::Id(id.to_owned()))?;
    build(keys, Some(id))
}

fn build(keys: Option<&wingbeat_tls::Identity>, only: Option<VehicleId>) -> Result<Client, NoClient> {
    let tls = match keys {
        Some(keys) => keys.client(only),
        // No authority of the operator's computer is asked: nothing is reached by TLS.
        None => wingbeat_tls::plain_client(),
    };
    let client = Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(tls?)
        .tls_info(true)
        .connect_timeout(CONNECT_LIMIT)
        .redirect(reqwest::redirect::Policy::none())
        .build();
    Ok(client?)
}

/// The clients of the fleet: one for whatever answers, one for each aircraft by its key.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    keys: Option<wingbeat_tls::Identity>,
    any: Client,
    of: Arc<Mutex<BTreeMap<String, Client>>>,
    tokens: Tokens,
}

/// The tokens of the leases that this service holds, by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens(Arc<Mutex<BTreeMap<String, String>>>);

impl Tokens {
    /// The token of the lease of the aircraft at that address.
    pub(crate) fn get(&self, address: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(address).cloned()
    }

    pub(crate) fn keep(&self, address: &str, token: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(address.to_owned(), token.to_owned());
    }
}

impl Clients {
    /// By these keys, or without.
    pub(crate) fn new(keys: Option<wingbeat_tls::Identity>) -> Result<Self, NoClient> {
        Ok(Self { any: new(keys.as_ref())?, keys, of: Arc::default(), tokens: Tokens::default() })
    }

    /// The keys of the connections.
    pub(crate) fn keys(&self) -> Option<&wingbeat_tls::Identity> {
        self.keys.as_ref()
    }

    /// The tokens of the leases.
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Where it is not known who answers.
    pub(crate) fn any(&self) -> &Client {
        &self.any
    }

    /// For the aircraft with this id.
    pub(crate) fn of(&self, id: &str) -> Result<Client, String> {
        if self.keys.is_none() {
            return Ok(self.any.clone());
        }
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = of.get(id) {
            return Ok(client.clone());
        }
        let client = only(self.keys.as_ref(), id).map_err(|why| format!("no HTTP client: {why}"))?;
        of.insert(id.to_owned(), client.clone());
        Ok(client)
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum NoClient {
    /// No TLS can be spoken with the keys.
    #[error("found no TLS with these keys ({0}), expected TLS 1.3")]
    Tls(#[from] wingbeat_tls::Error),
    /// No aircraft has such an id; a client for it would speak to any.
    #[error("found the id {0:?}, expected 16 hexadecimal digits")]
    Id(String),
    /// The system does not give what a client needs.
    #[error(transparent)]
    Http(#[from] reqwest::Error),
}

/// Whether the connection's key is that of the aircraft with this id; without TLS any is.
pub(crate) fn check_key(
    keys: Option<&wingbeat_tls::Identity>,
    response: &Response,
    id: &str,
) -> Result<(), String> {
    let Some(keys) = keys else { return Ok(()) };
    let shown = response.extensions().get::<TlsInfo>().and_then(TlsInfo::peer_certificate);
    let found = shown.and_then(|key| keys.peer(key)).map(|peer| peer.id);
    if found.is_some() && found == VehicleId::from_hexadecimal(id) {
        return Ok(());
    }
    let found = found.map_or("none".to_owned(), |id| id.to_string());
    Err(format!("it says that it is {id}: found the key of {found}, expected that of {id}"))
}

/// The aircraft that answers at the address.
pub(crate) async fn identity(clients: &Clients, address: &str) -> Result<Identity, String> {
    let (response, identity): (_, Identity) = answered(clients.any(), address, paths::IDENTITY).await?;
    check_key(clients.keys(), &response, &identity.id)?;
    if identity.id.len() == 16 && identity.id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(identity);
    }
    let found: String = identity.id.chars().take(64).collect();
    Err(format!("its identity has the id {found:?}, expected 16 lower-case hexadecimal digits"))
}

/// The mission that the aircraft holds, if its hash is the one wanted before and after reading it.
pub(crate) async fn mission(client: &Client, address: &str, hash: &str) -> Result<MissionUpload, String> {
    let mission = get(client, address, paths::MISSION).await?;
    let status: AircraftStatus = get(client, address, paths::STATUS).await?;
    match status.mission {
        Some(held) if held.hash == hash => Ok(mission),
        _ => Err("its mission changed while it was read".to_owned()),
    }
}

/// Gives an aircraft a mission; the answer is the aircraft's own.
pub(crate) async fn put_mission(
    client: &Client,
    address: &str,
    mission: &MissionUpload,
    lease: Option<String>,
) -> Result<(StatusCode, Vec<u8>), String> {
    let request = client.put(format!("{address}{}", paths::MISSION)).json(mission).timeout(MISSION_LIMIT);
    let request = with_lease(request, lease);
    let mut response = request.send().await.map_err(|error| reason(&error))?;
    let body = body(&mut response).await?;
    Ok((response.status(), body))
}

/// With the token of the lease, where there is one.
pub(crate) fn with_lease(request: RequestBuilder, token: Option<String>) -> RequestBuilder {
    match token {
        Some(token) => request.header(paths::LEASE_HEADER, token),
        None => request,
    }
}

/// Asks with a method and, where there is one, a JSON body; the answer is the other side's own.
pub(crate) async fn ask<T: Serialize>(
    client: &Client,
    method: Method,
    address: &str,
    path: &str,
    body: Option<&T>,
    lease: Option<String>,
) -> Result<(StatusCode, Vec<u8>), String> {
    let request = client.request(method, format!("{address}{path}")).timeout(MISSION_LIMIT);
    let request = body.into_iter().fold(request, |request, body| request.json(body));
    let mut response = with_lease(request, lease).send().await.map_err(|error| reason(&error))?;
    let body = self::body(&mut response).await?;
    Ok((response.status(), body))
}

pub(crate) async fn get<T: DeserializeOwned>(
    client: &Client,
    address: &str,
    path: &str,
) -> Result<T, String> {
    answered(client, address, path).await.map(|(_, answer)| answer)
}

/// An answer with its body, and the rest of it.
pub(crate) async fn answered<T: DeserializeOwned>(
    client: &Client,
    address: &str,
    path: &str,
) -> Result<(Response, T), String> {
    let request = client.get(format!("{address}{path}")).timeout(ANSWER_LIMIT);
    let mut response = request.send().await.map_err(|error| reason(&error))?;
    let body = body(&mut response).await?;
    if !response.status().is_success() {
        return Err(format!("{path} answers {}", refusal(response.status(), &body)));
    }
    let answer = serde_json::from_slice(&body);
    answer
        .map(|answer| (response, answer))
        .map_err(|error| format!("{path} is not what was expected: {error}"))
}

/// The whole answer, up to a bound.
pub(crate) async fn body(response: &mut Response) -> Result<Vec<u8>, String> {
    body_up_to(response, MAX_ANSWER_BYTES).await
}

pub(crate) async fn body_up_to(response: &mut Response, most: usize) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| reason(&error))? {
        if body.len() + chunk.len() > most {
            return Err(format!("its answer has more than {most} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// An unsuccessful answer as text: the aircraft's sentence where it sent one.
pub(crate) fn refusal(status: StatusCode, body: &[u8]) -> String {
    match serde_json::from_slice::<ApiError>(body) {
        Ok(error) => format!("{}: {}", status.as_u16(), error.message),
        Err(_) => format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or("without a reason")),
    }
}

/// The sentence of an unsuccessful answer that is passed on as it is.
pub(crate) fn sentence(status: StatusCode, body: &[u8]) -> String {
    serde_json::from_slice::<ApiError>(body).map_or_else(|_| refusal(status, body), |error| error.message)
}

/// The cause of a failed request in short, without the address, which is shown next to it.
pub(crate) fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    if let Some(why) = why(error) {
        return tls_reason(why).to_owned();
    }
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
        Some(std::io::ErrorKind::ConnectionRefused) => "connection refused".to_owned(),
        Some(std::io::ErrorKind::ConnectionReset) => "connection reset".to_owned(),
        Some(std::io::ErrorKind::HostUnreachable) => "no route to it".to_owned(),
        Some(std::io::ErrorKind::NetworkUnreachable) => "its network is not reachable".to_owned(),
        _ => cause.to_string(),
    }
}

/// What is wrong between this console's keys and the aircraft's.
fn tls_reason(why: Why) -> &'static str {
    match why {
        Why::NotTls => {
            "found HTTP without TLS, expected TLS 1.3: this aircraft has no keys (security.insecure = true), this console \
             has (--keys)"
        }
        Why::Incompatible => "found no common way to speak TLS, expected TLS 1.3 with raw public keys",
        Why::UnknownKey => {
            "found a key that is no aircraft's in this console's roster, expected that of an enrolled aircraft"
        }
        Why::RefusedOurs => {
            "this console's key was refused: expected it in the aircraft's roster (are the rosters of the same epoch?)"
        }
        Why::Broken => "the TLS handshake broke off or proved nothing",
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use wingbeat_wire::{FleetKey, Role, Roster, Signer};

    use super::*;

    const MEMBERS: [(u8, Role); 3] = [(1, Role::Aircraft), (2, Role::Operator), (3, Role::Aircraft)];

    fn keys(secret: u8) -> wingbeat_tls::Identity {
        let signer = |secret| Signer::new(&[secret; 32], 1, FleetKey([3; 32]));
        let mut roster = Roster::new(1, FleetKey([3; 32]));
        for (secret, role) in MEMBERS {
            let key = signer(secret).public_key().expect("a key");
            roster.add(VehicleId(u64::from(secret)), role, &key).expect("room in the roster");
        }
        wingbeat_tls::Identity::new(&signer(secret), &roster).expect("TLS")
    }

    /// What the console finds where the aircraft with this key tells this id.
    async fn asked(key: u8, told: u64) -> Result<String, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("https://{}", listener.local_addr().expect("an address"));
        let identity = Identity {
            id: VehicleId(told).to_string(),
            name: "one".to_owned(),
            version: "1".to_owned(),
            api_version: 1,
            protocol: "muscop".to_owned(),
        };
        let body = serde_json::to_string(&identity).expect("JSON");
        let acceptor = keys(key).acceptor().expect("TLS");
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("a connection");
            let (mut stream, _) = acceptor.accept(stream).await.expect("a handshake");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.expect("a head"));
            }
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.expect("the answer is sent");
            stream.flush().await.expect("the answer is sent");
        });
        let clients = Clients::new(Some(keys(2))).expect("a client");
        let found = super::identity(&clients, &address).await;
        server.await.expect("the aircraft answered");
        found.map(|identity| identity.id)
    }

    #[tokio::test]
    async fn an_aircraft_that_tells_anothers_id_is_refused_by_its_key() {
        let [first, third] = [1, 3].map(|id| VehicleId(id).to_string());
        assert_eq!(asked(1, 1).await, Ok(first.clone()));
        assert_eq!(
            asked(3, 1).await,
            Err(format!("it says that it is {first}: found the key of {third}, expected that of {first}"))
        );
    }
}
