//! Who may do what: users, their sessions, the roles that each request needs, and the log of what was done.
//!
//! ```text
//! request ─▶ cross-site? ─▶ what it needs (a table) ─▶ session ─▶ role ─▶ handler ─▶ audit log
//!               403                                     401       403
//! ```
//!
//! Without a users' file whatever reaches the service commands, as before; what it does is noted all the same.

mod attempts;
pub(crate) mod audit;
mod gate;
pub(crate) mod http;
pub mod users;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use base64::Engine as _;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use wingbeat_api::{SignIn, SignedIn, User, UserRole};

use crate::checklist::Configured as Checklist;
use crate::refused::Refused;
use attempts::Attempts;
use audit::Audit;
pub(crate) use gate::{Wrote, gate, wrote};
use users::{Users, UsersError};

/// How long a session lasts unless it is configured: a day of flying.
pub const SESSION: Duration = Duration::from_secs(12 * 3600);
/// Sessions of one user at the same time: the user's own oldest gives way, and no other user's.
const SESSIONS_OF_USER: usize = 8;
/// Sessions at the same time, with those that ended and are remembered. Of the user who has the most the oldest gives way.
const SESSIONS_MAX: usize = 256;
/// An ended session is known for this time, so that its page is told what became of it.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);
/// Of programs that send a name and a password with each request so many are known; all compare anew after that.
const BY_PASSWORD_MAX: usize = 64;
/// Passwords that are compared at the same time: each needs 19 MiB and some tens of milliseconds of a core.
const COMPARED_MAX: usize = 1;
/// Requests that wait for that.
const WAITING_MAX: usize = 8;

/// Who may use the service, where what was done is kept, and what has to be checked before a flight.
#[derive(Clone, Debug)]
pub struct Protection {
    /// The users' file; without it there is no login, and whatever reaches the service commands.
    pub users: Option<PathBuf>,
    /// How long a session lasts from signing in.
    pub session: Duration,
    /// The log of what was done; without it what was done is known until the service ends.
    pub audit: Option<PathBuf>,
    /// The page is served by TLS with this certificate; without it in the clear.
    pub tls: Option<PageCertificate>,
    /// What has to be ticked before *Setup* and *Start*; without it nothing.
    pub checklist: Option<Checklist>,
}

impl Default for Protection {
    fn default() -> Self {
        Self { users: None, session: SESSION, audit: None, tls: None, checklist: None }
    }
}

/// The certificate of the page, in PEM files.
#[derive(Clone, Debug)]
pub struct PageCertificate {
    /// The chain, the page's own first.
    pub certificate: PathBuf,
    /// Its secret key.
    pub key: PathBuf,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Empty where the service has no users.
    pub(crate) name: String,
    /// What the caller may do: everything, where the service has no users.
    pub(crate) role: UserRole,
    /// The session, by which it is asked later whether it goes on.
    session: Option<Key>,
}

impl Caller {
    /// As the log of what was done has it: absent where the service has no users.
    pub(crate) fn known_role(&self) -> Option<UserRole> {
        self.session.map(|_| self.role)
    }
}

/// What a session is found by: the hash of its token, so that the time of a search says nothing of the token.
type Key = [u8; 32];

#[derive(Clone, Debug)]
struct Session {
    name: String,
    /// Of the user's password.
    fingerprint: [u8; 32],
    began: Instant,
    /// Why it ended, if it did.
    ended: Option<&'static str>,
}

/// The door.
#[derive(Debug)]
pub(crate) struct Access {
    users: Option<Users>,
    sessions: Mutex<BTreeMap<Key, Session>>,
    attempts: Mutex<Attempts>,
    /// The sessions of those who send a name and a password with each request, by the hash of both.
    by_password: Mutex<BTreeMap<Key, Key>>,
    comparing: Semaphore,
    waiting: Semaphore,
    session: Duration,
    /// The cookie's name. Cookies of one host are sent to all its ports: each service has a name of its own.
    cookie: String,
    /// Whether the cookie travels by TLS alone.
    secure: bool,
    pub(crate) audit: Audit,
    /// Compared where a name is not known, so that both take equally long.
    stand_in: Option<users::Entry>,
}

const SIGNED_OUT: &str = "found no session, expected one of a user: sign in";
const UNKNOWN: &str = "found a session that this service does not know (it was started anew, or the session is another's), expected one of a user: sign in";
const EXPIRED: &str = "found a session whose time is over, expected one that lasts: sign in again";
const ENDED: &str = "found a session that was ended, expected one that lasts: sign in again";
const OWN_NEWER: &str = "found a session that made room for a newer one of the same user (8 at most), expected one that lasts: sign in again";
const OTHER_USER: &str = "found a session of a user who is no longer one, or whose password was changed, expected one that lasts: sign in again";

impl Access {
    pub(crate) fn new(protection: &Protection, port: u16) -> Result<Self, NoAccess> {
        let users = protection.users.as_deref().map(Users::open).transpose()?;
        let stand_in = match &users {
            Some(_) => {
                Some(users::Entry::new(UserRole::Observer, "no user has this").map_err(NoAccess::Hash)?)
            }
            None => None,
        };
        let audit = Audit::open(protection.audit.as_deref())
            .map_err(|error| NoAccess::Audit { path: protection.audit.clone().unwrap_or_default(), error })?;
        Ok(Self {
            users,
            sessions: Mutex::default(),
            attempts: Mutex::default(),
            by_password: Mutex::default(),
            comparing: Semaphore::new(COMPARED_MAX),
            waiting: Semaphore::new(WAITING_MAX),
            session: protection.session,
            cookie: format!("wingbeat-{port}"),
            secure: protection.tls.is_some(),
            audit,
            stand_in,
        })
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<Key, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who asks, by the session's cookie.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Result<Caller, Refused> {
        let Some(users) = &self.users else {
            return Ok(Caller { name: String::new(), role: UserRole::Administrator, session: None });
        };
        let Some(token) = self.token(headers)? else {
            return Err(Refused::unauthorized("signed_out", SIGNED_OUT));
        };
        self.of_session(users, key(token)).map(|(caller, _)| caller)
    }

    /// Who has a session, and how long still.
    fn of_session(&self, users: &Users, key: Key) -> Result<(Caller, Duration), Refused> {
        let mut sessions = self.sessions();
        let session =
            sessions.get_mut(&key).ok_or_else(|| Refused::unauthorized("session_unknown", UNKNOWN))?;
        let age = session.began.elapsed();
        if session.ended.is_none() && age >= self.session {
            session.ended = Some(EXPIRED);
        }
        let user = users.get(&session.name);
        if session.ended.is_none()
            && user.as_ref().is_none_or(|user| user.fingerprint() != session.fingerprint)
        {
            session.ended = Some(OTHER_USER);
        }
        match (session.ended, user) {
            (None, Some(user)) => {
                let caller = Caller { name: session.name.clone(), role: user.role, session: Some(key) };
                Ok((caller, self.session.saturating_sub(age)))
            }
            (ended, _) => Err(Refused::unauthorized("session_ended", ended.unwrap_or(OTHER_USER))),
        }
    }

    /// Whether who asked may still see what was asked for.
    pub(crate) fn goes_on(&self, caller: &Caller) -> bool {
        match (&self.users, caller.session) {
            (Some(users), Some(key)) => self.of_session(users, key).is_ok(),
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// The session of the request as its page is told.
    pub(crate) fn shown(&self, headers: &HeaderMap) -> wingbeat_api::Access {
        let Some(users) = &self.users else {
            return wingbeat_api::Access { login: false, user: None, ended: None };
        };
        let found = match self.token(headers) {
            Ok(Some(token)) => self.of_session(users, key(token)),
            Ok(None) => return wingbeat_api::Access { login: true, user: None, ended: None },
            Err(refused) => Err(refused),
        };
        match found {
            Ok((caller, left)) => {
                wingbeat_api::Access { login: true, user: Some(signed_in(caller, left)), ended: None }
            }
            Err(refused) => {
                wingbeat_api::Access { login: true, user: None, ended: Some(refused.to_string()) }
            }
        }
    }

    /// Compares the password; the answer is who has signed in, and the cookie.
    pub(crate) async fn sign_in(
        self: &std::sync::Arc<Self>,
        request: SignIn,
        address: IpAddr,
        headers: &HeaderMap,
    ) -> Result<(SignedIn, HeaderValue), Refused> {
        let Some(users) = &self.users else {
            return Err(Refused::conflict(
                "sign in: this service has no users (--users FILE), and no request needs a session"
                    .to_owned(),
            ));
        };
        if users::check_name(&request.name).is_err() || request.password.len() > users::PASSWORD_MAX {
            return Err(wrong());
        }
        let attempt = self.attempts().take(address, &request.name, Instant::now());
        attempt.map_err(|wait| Refused::too_many(wait.as_secs() + 1))?;
        let _place = self.waiting.try_acquire().map_err(|_| {
            Refused::busy(
                "sign in: too many passwords are compared now, try again in some seconds".to_owned(),
            )
        })?;
        let turn = self.comparing.acquire().await;
        let user = users.get(&request.name);
        let (entry, is_user) = (user.clone().or_else(|| self.stand_in.clone()), user.is_some());
        let password = request.password;
        let comparison =
            tokio::task::spawn_blocking(move || entry.is_some_and(|entry| entry.has_password(&password)));
        let is_right = comparison.await.unwrap_or(false) && is_user;
        drop(turn);
        let Some(user) = user.filter(|_| is_right) else { return Err(wrong()) };
        self.attempts().succeeded(address, &request.name, Instant::now());
        // What this browser had before is no session any more.
        self.sign_out(headers);
        let token = wingbeat_keys::file::random().map_err(|error| {
            Refused::busy(format!("sign in: found no random bytes ({error}), expected 32"))
        })?;
        let token = wingbeat_keys::file::hexadecimal(&token);
        let session = Session {
            name: request.name.clone(),
            fingerprint: user.fingerprint(),
            began: Instant::now(),
            ended: None,
        };
        let key = key(&token);
        let mut sessions = self.sessions();
        sessions.retain(|_, session| {
            session.ended.is_none() || session.began.elapsed() < self.session + REMEMBERED
        });
        make_room(&mut sessions, &session.name);
        sessions.insert(key, session);
        drop(sessions);
        let caller = Caller { name: request.name, role: user.role, session: Some(key) };
        Ok((signed_in(caller, self.session), self.cookie(&token, self.session.as_secs())?))
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name and the password that come with a request itself (RFC 7617), where the service has users.
    pub(crate) fn basic(&self, headers: &HeaderMap) -> Option<SignIn> {
        self.users.as_ref()?;
        let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, encoded) = text.split_once(' ')?;
        let decoded = base64::engine::general_purpose::STANDARD.decode(encoded.trim()).ok()?;
        let decoded = String::from_utf8(decoded).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
        let (name, password) = decoded.split_once(':')?;
        Some(SignIn { name: name.to_owned(), password: password.to_owned() })
    }

    /// Who has this name and password. They are compared once: then a session is kept for them, until it ends.
    pub(crate) async fn caller_by_password(
        self: &std::sync::Arc<Self>,
        user: SignIn,
        address: IpAddr,
    ) -> Result<Caller, Refused> {
        let of = key(&format!("{}:{}", user.name, user.password));
        let known = self.by_password().get(&of).copied();
        if let (Some(users), Some(known)) = (&self.users, known)
            && let Ok((caller, _)) = self.of_session(users, known)
        {
            return Ok(caller);
        }
        let (_, cookie) = self.sign_in(user, address, &HeaderMap::new()).await?;
        let text = cookie.to_str().unwrap_or_default();
        let token = text.split(';').next().and_then(|pair| pair.split_once('=')).map(|(_, token)| token);
        let session = key(token.unwrap_or_default());
        let mut by_password = self.by_password();
        if by_password.len() >= BY_PASSWORD_MAX {
            by_password.clear();
        }
        by_password.insert(of, session);
        drop(by_password);
        let users = self.users.as_ref().ok_or_else(|| Refused::unauthorized("signed_out", SIGNED_OUT))?;
        self.of_session(users, session).map(|(caller, _)| caller)
    }

    fn by_password(&self) -> MutexGuard<'_, BTreeMap<Key, Key>> {
        self.by_password.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the session of the request, if it has one.
    pub(crate) fn sign_out(&self, headers: &HeaderMap) {
        if let Ok(Some(token)) = self.token(headers)
            && let Some(session) = self.sessions().get_mut(&key(token))
        {
            session.ended = Some(ENDED);
        }
    }

    /// What makes a browser forget the session.
    pub(crate) fn no_cookie(&self) -> Result<HeaderValue, Refused> {
        self.cookie("", 0)
    }

    /// The users, each with the number of sessions.
    pub(crate) fn list(&self) -> Vec<User> {
        let Some(users) = &self.users else { return vec![] };
        let going_on = |name: &str| {
            let sessions = self.sessions();
            let keys: Vec<Key> =
                sessions.iter().filter(|(_, session)| session.name == name).map(|(key, _)| *key).collect();
            drop(sessions);
            keys.into_iter().filter(|key| self.of_session(users, *key).is_ok()).count()
        };
        let user = |(name, role): (String, UserRole)| {
            let sessions = u32::try_from(going_on(&name)).unwrap_or(u32::MAX);
            User { name, role, sessions }
        };
        users.all().into_iter().map(user).collect()
    }

    /// Ends every session of a user; how many there were.
    pub(crate) fn end_sessions(&self, name: &str) -> Result<u32, Refused> {
        let is_user = self.users.as_ref().is_some_and(|users| users.get(name).is_some());
        if !is_user {
            return Err(Refused::not_found(
                "user: found a name that no user has, expected that of a user".to_owned(),
            ));
        }
        let mut ended = 0;
        for session in
            self.sessions().values_mut().filter(|session| session.name == name && session.ended.is_none())
        {
            session.ended = Some(ENDED);
            ended += 1;
        }
        Ok(ended)
    }

    /// The token of the session's cookie.
    fn token<'a>(&self, headers: &'a HeaderMap) -> Result<Option<&'a str>, Refused> {
        let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut tokens = texts
            .flat_map(|text| text.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == self.cookie)
            .map(|(_, token)| token);
        match (tokens.next(), tokens.next()) {
            (found, None) => Ok(found),
            // Which of them the service gave is not known.
            (_, Some(_)) => Err(Refused::unauthorized("session_unknown", UNKNOWN)),
        }
    }

    fn cookie(&self, token: &str, seconds: u64) -> Result<HeaderValue, Refused> {
        let secure = if self.secure { "; Secure" } else { "" };
        let name = &self.cookie;
        let text = format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
        HeaderValue::try_from(text).map_err(|error| Refused::busy(format!("sign in: {error}")))
    }
}

/// Ends the oldest session of a user who has as many as one may have, and forgets one where there are too many of all.
fn make_room(sessions: &mut BTreeMap<Key, Session>, name: &str) {
    let lasts = |session: &&mut Session| session.name == name && session.ended.is_none();
    if sessions.values_mut().filter(lasts).count() >= SESSIONS_OF_USER
        && let Some(oldest) = sessions.values_mut().filter(lasts).min_by_key(|session| session.began)
    {
        oldest.ended = Some(OWN_NEWER);
    }
    if sessions.len() < SESSIONS_MAX {
        return;
    }
    let of_user = |name: &str| sessions.values().filter(|session| session.name == name).count();
    let rank = |session: &Session| (session.ended.is_some(), of_user(&session.name), Reverse(session.began));
    let victim = sessions.iter().max_by_key(|(_, session)| rank(session)).map(|(key, _)| *key);
    victim.and_then(|key| sessions.remove(&key));
}

fn key(token: &str) -> Key {
    blake3::hash(token.as_bytes()).into()
}

fn signed_in(caller: Caller, left: Duration) -> SignedIn {
    let ends_in_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    SignedIn { name: caller.name, role: caller.role, ends_in_ms }
}

/// Not which of both.
fn wrong() -> Refused {
    let message =
        "sign in: found a name and a password that do not belong together, expected those of a user";
    Refused::unauthorized("wrong_password", message)
}

/// Why the door cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum NoAccess {
    /// The users' file.
    #[error("users: {0}")]
    Users(#[from] UsersError),
    /// No password can be hashed.
    #[error("users: {0}")]
    Hash(String),
    /// The log cannot be written.
    #[error("audit log: {}: found {error}, expected a file that can be appended to", .path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The page's certificate.
    #[error("page: {0}")]
    Tls(#[from] wingbeat_tls::NoCertificate),
}

impl Refused {
    fn unauthorized(code: &'static str, message: &str) -> Self {
        Self::bad_request(message.to_owned()).with_status(StatusCode::UNAUTHORIZED).with_code(code)
    }

    fn forbidden(code: &'static str, message: String) -> Self {
        Self::bad_request(message).with_status(StatusCode::FORBIDDEN).with_code(code)
    }

    fn too_many(seconds: u64) -> Self {
        let message = format!(
            "sign in: found too many attempts from this address, or under this name, expected the next in {seconds} s"
        );
        Self::bad_request(message).with_status(StatusCode::TOO_MANY_REQUESTS).with_code("too_many_attempts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_ins_without_end_end_no_session_of_another_user() {
        let mut sessions = BTreeMap::new();
        let now = Instant::now();
        let add = |sessions: &mut BTreeMap<Key, Session>, name: &str, number: u32| {
            let began = now + Duration::from_secs(u64::from(number));
            let session = Session { name: name.to_owned(), fingerprint: [0; 32], began, ended: None };
            make_room(sessions, name);
            sessions.insert(key(&format!("{name}{number}")), session);
        };
        add(&mut sessions, "anna", 0);
        for number in 1..1_000 {
            add(&mut sessions, "eve", number);
        }
        assert!(sessions[&key("anna0")].ended.is_none());
        let lasting = sessions.values().filter(|session| session.name == "eve" && session.ended.is_none());
        assert_eq!(lasting.count(), SESSIONS_OF_USER);
        assert!(sessions[&key("eve999")].ended.is_none(), "the newest lasts");
        assert_eq!(sessions.len(), SESSIONS_MAX);
        // Users without end: the one with the most makes room first.
        for number in 0..1_000 {
            add(&mut sessions, &format!("user{number}"), number);
        }
        assert_eq!(sessions.len(), SESSIONS_MAX);
    }
}
