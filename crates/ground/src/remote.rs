//! A ground service as a program reaches it: its API with a session, and its event stream. `wingbeat fleet` is written with it.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

pub use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, COOKIE, SET_COOKIE};
use reqwest::{Client, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sse_core::{SseDecoder, SseEvent};
use tokio::time::timeout;
use wingbeat_api::{Access, ApiError, SignIn, paths};

use crate::{base_address, client, delta};

/// For an answer: a mission passes through to an aircraft, the file of a link test waits for several.
const ANSWER_LIMIT: Duration = Duration::from_secs(70);
/// A stream without an event for this long is closed: five of its pulses are missing.
const SILENCE_LIMIT: Duration = Duration::from_secs(5);
/// The picture of 512 aircraft with their parameters.
const ANSWER_LEN_MAX: usize = 32 << 20;
const EVENT_LEN_MAX: NonZeroUsize = NonZeroUsize::new(ANSWER_LEN_MAX).expect("not zero");

/// Why there is no answer as it was wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nothing was sent: the address, the authority or the way there is wrong.
    #[error("{0}")]
    Input(String),
    /// The service refused it.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The stable word of the refusal.
        code: String,
        /// The service's sentence.
        message: String,
    },
    /// No connection came about: nothing was asked.
    #[error("{0}")]
    NotReached(String),
    /// It was asked, and whether it did so is not known.
    #[error("{0}")]
    Unanswered(String),
}

impl Fault {
    /// A stable word for programs.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Input(_) => "bad_request",
            Self::Refused { code, .. } => code,
            Self::NotReached(_) => "not_reached",
            Self::Unanswered(_) => "unanswered",
        }
    }

    /// Whether the service wants a user to sign in.
    #[must_use]
    pub fn asks_for_session(&self) -> bool {
        matches!(self, Self::Refused { status: 401, .. })
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The kind of its content.
    pub content_type: String,
    /// The content.
    pub body: Vec<u8>,
}

impl Answer {
    /// Its JSON.
    ///
    /// # Errors
    /// It is none, or of another kind.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Fault::Unanswered(format!(
                "found an answer of another kind ({error}), expected that of this version's API"
            ))
        })
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A ground service.
#[derive(Clone, Debug)]
pub struct Remote {
    client: Client,
    address: String,
    /// Name and value of the session's cookie.
    cookie: Option<String>,
}

impl Remote {
    /// The service at `HOST:PORT`, `http://HOST:PORT` or `https://HOST:PORT`; by TLS it must show a certificate that the authority
    /// in the file `trust` has signed. Nothing is sent yet.
    ///
    /// # Errors
    /// An address that is none, a file without an authority, TLS without one, one without TLS.
    pub fn new(address: &str, trust: Option<&Path>) -> Result<Self, Fault> {
        let by_tls = address.starts_with("https://") || (trust.is_some() && !address.contains("://"));
        let scheme = if by_tls { "https" } else { "http" };
        let expected = "expected HOST:PORT, http://HOST:PORT or https://HOST:PORT";
        let full = base_address(address, scheme)
            .map_err(|why| Fault::Input(format!("ground address {address:?}: {why}; {expected}")))?;
        let tls = match (by_tls, trust) {
            (true, Some(authority)) => {
                wingbeat_tls::page_client(authority).map_err(|why| Fault::Input(why.to_string()))?
            }
            (true, None) => {
                return Err(Fault::Input(format!(
                    "ground address {address:?}: found https and no authority to trust, expected the fleet's pages.crt (--trust)"
                )));
            }
            (false, Some(authority)) => {
                return Err(Fault::Input(format!(
                    "ground address {address:?}: found http, by which no certificate is shown, and the authority {}, expected https",
                    authority.display()
                )));
            }
            (false, None) => {
                wingbeat_tls::plain_client().map_err(|why| Fault::Input(format!("no HTTP client: {why}")))?
            }
        };
        let client = Client::builder()
            .no_proxy()
            .tls_backend_preconfigured(tls)
            .connect_timeout(client::CONNECT_LIMIT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|why| Fault::Input(format!("no HTTP client: {why}")))?;
        Ok(Self { client, address: full, cookie: None })
    }

    /// The address in its one form.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether what is sent can be read on its way by others than this computer.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let host = reqwest::Url::parse(&self.address).ok();
        let is_own = host.as_ref().and_then(reqwest::Url::host_str).is_some_and(|host| {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        });
        self.address.starts_with("http://") && !is_own
    }

    /// The session's cookie, to be kept as a password is.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.cookie.as_deref()
    }

    /// Goes on with a session.
    pub fn set_session(&mut self, cookie: Option<String>) {
        self.cookie = cookie;
    }

    /// Begins a session.
    ///
    /// # Errors
    /// The service's refusal, or there is no answer.
    pub async fn sign_in(&mut self, user: &SignIn) -> Result<Access, Fault> {
        let response = self.send(Method::POST, paths::SESSION, Some(user)).await?;
        let cookie = response.headers().get(SET_COOKIE).and_then(|value| value.to_str().ok());
        let cookie = cookie.and_then(|value| value.split(';').next()).map(str::to_owned);
        let access = read(response).await?.json()?;
        self.cookie = cookie;
        Ok(access)
    }

    /// Ends the session.
    ///
    /// # Errors
    /// The service's refusal, or there is no answer.
    pub async fn sign_out(&mut self) -> Result<(), Fault> {
        self.ask(Method::DELETE, paths::SESSION, None::<&()>).await?;
        self.cookie = None;
        Ok(())
    }

    /// What is at a path.
    ///
    /// # Errors
    /// The service's refusal, or there is no answer.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault> {
        self.ask(Method::GET, path, None::<&()>).await?.json()
    }

    /// Asks with a method and, where there is one, a JSON body.
    ///
    /// # Errors
    /// The service's refusal, or there is no answer.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Answer, Fault> {
        let answer = async { read(self.send(method, path, body).await?).await };
        let late =
            || Fault::Unanswered(format!("{}: no answer within {} s", self.address, ANSWER_LIMIT.as_secs()));
        timeout(ANSWER_LIMIT, answer).await.map_err(|_| late())?
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Response, Fault> {
        let mut request = self.client.request(method, format!("{}{path}", self.address));
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(cookie) = &self.cookie {
            request = request.header(COOKIE, cookie);
        }
        request.send().await.map_err(|error| {
            let why = format!("{}: {}", self.address, reason(&error));
            if error.is_connect() && wingbeat_tls::why(&error).is_none() {
                Fault::NotReached(format!(
                    "no service answers at {why}; is `wingbeat ground` running there? --ground ADDRESS names another"
                ))
            } else if error.is_connect() || error.is_builder() {
                Fault::NotReached(why)
            } else {
                Fault::Unanswered(why)
            }
        })
    }

    /// The fleet as it changes.
    ///
    /// # Errors
    /// The service's refusal, or there is no answer.
    pub async fn events(&self) -> Result<Events, Fault> {
        let opened = timeout(ANSWER_LIMIT, self.send(Method::GET, paths::FLEET_EVENTS, None::<&()>)).await;
        let response =
            opened.map_err(|_| Fault::Unanswered(format!("{}: no answer in time", self.address)))??;
        let response =
            if response.status().is_success() { response } else { return Err(refusal(response).await) };
        let decoder = SseDecoder::with_limit(EVENT_LEN_MAX);
        Ok(Events { response, decoder, waiting: VecDeque::new(), picture: Value::Null })
    }
}

/// A TLS failure is about certificates here.
fn reason(error: &reqwest::Error) -> String {
    use wingbeat_tls::Why;
    match wingbeat_tls::why(error) {
        Some(Why::NotTls) => "found HTTP without TLS, expected TLS 1.3: is it http://?".to_owned(),
        Some(Why::Incompatible) => "found no common way to speak TLS, expected TLS 1.3".to_owned(),
        Some(Why::UnknownKey | Why::Broken | Why::RefusedOurs) => {
            "found a certificate that is not trusted for this address, expected one of the authority (--trust) for this name"
                .to_owned()
        }
        None => client::reason(error),
    }
}

async fn read(mut response: Response) -> Result<Answer, Fault> {
    if !response.status().is_success() {
        return Err(refusal(response).await);
    }
    let content_type =
        response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let content_type = content_type.to_owned();
    let body = client::body_up_to(&mut response, ANSWER_LEN_MAX).await.map_err(Fault::Unanswered)?;
    Ok(Answer { content_type, body })
}

async fn refusal(mut response: Response) -> Fault {
    let status = response.status();
    let body = client::body_up_to(&mut response, ANSWER_LEN_MAX).await.unwrap_or_default();
    let error = serde_json::from_slice::<ApiError>(&body);
    let (code, message) = error.map_or_else(
        |_| (String::from("refused"), client::refusal(status, &body)),
        |error| (error.code, error.message),
    );
    Fault::Refused { status: status.as_u16(), code, message }
}

/// The event stream.
#[derive(Debug)]
pub struct Events {
    response: Response,
    decoder: SseDecoder,
    waiting: VecDeque<(String, Value)>,
    picture: Value,
}

impl Events {
    /// The next event: its name and its data.
    ///
    /// # Errors
    /// Why the stream has ended.
    pub async fn next(&mut self) -> Result<(String, Value), Fault> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(event);
            }
            let ended = |why: String| Fault::Unanswered(format!("the event stream has ended: {why}"));
            let chunk = timeout(SILENCE_LIMIT, self.response.chunk()).await;
            let chunk =
                chunk.map_err(|_| ended(format!("it was silent for {} s", SILENCE_LIMIT.as_secs())))?;
            let chunk = chunk.map_err(|error| ended(reason(&error)))?;
            let mut chunk = chunk.ok_or_else(|| ended("the service, or the session, is over".to_owned()))?;
            while let Some(event) = self.decoder.next(&mut chunk) {
                let Ok(event) = event else { return Err(ended("an event is too long".to_owned())) };
                let SseEvent::Message(message) = event else { continue };
                let data = serde_json::from_str(&message.data).map_err(|error| ended(error.to_string()))?;
                self.waiting.push_back((message.event.to_string(), data));
            }
        }
    }

    /// The picture after an event: a new one, or the old one with what the event changes. Commands are in it as they are in an
    /// update: those that changed take the place of the old ones.
    pub fn apply(&mut self, event: &str, data: &Value) -> &Value {
        match event {
            "picture" => self.picture = data.clone(),
            "update" => self.update(data),
            _ => {}
        }
        &self.picture
    }

    fn update(&mut self, update: &Value) {
        let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
        for change in list(update, "aircraft") {
            let shown = self.picture["aircraft"].as_array_mut().into_iter().flatten();
            if let Some(place) = shown.into_iter().find(|aircraft| aircraft["address"] == change["address"]) {
                *place = delta::apply(place.take(), change["change"].clone());
            }
        }
        for command in list(update, "commands") {
            let Some(commands) = self.picture["commands"].as_array_mut() else { continue };
            match commands.iter_mut().find(|known| known["id"] == command["id"]) {
                Some(known) => *known = command,
                None => commands.push(command),
            }
        }
        if !update["checklist"].is_null() {
            let known = self.picture["checklist"].take();
            self.picture["checklist"] = delta::apply(known, update["checklist"].clone());
        }
        for name in ["time_ms", "actions", "corrections", "listening"] {
            if !update[name].is_null() {
                self.picture[name] = update[name].clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_one_form_and_tls_needs_an_authority() {
        let remote = Remote::new("127.0.0.1:8700", None).expect("a good address");
        assert_eq!((remote.address(), remote.is_open()), ("http://127.0.0.1:8700", false));
        for (address, is_open) in [
            ("http://localhost:1", false),
            ("[::1]:8700", false),
            ("10.0.0.2:8700", true),
            ("console.lab:80", true),
        ] {
            assert_eq!(Remote::new(address, None).expect("a good address").is_open(), is_open, "{address}");
        }
        for (address, trust, expected) in [
            (
                "https://a:1",
                None,
                "found https and no authority to trust, expected the fleet's pages.crt (--trust)",
            ),
            ("http://a:1", Some(Path::new("pages.crt")), "found http, by which no certificate is shown"),
            ("a:1", Some(Path::new("/nowhere/pages.crt")), "/nowhere/pages.crt: found"),
            ("a:99999", None, "ground address \"a:99999\": invalid port number; expected HOST:PORT"),
            ("http://a:1/api", None, "found more than a host and a port"),
        ] {
            let found = Remote::new(address, trust).expect_err(address).to_string();
            assert!(found.contains(expected), "{address}: {found}");
        }
    }
}
