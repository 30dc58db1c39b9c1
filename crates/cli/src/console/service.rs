//! The ground service that is asked, and the session with it.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use serde_json::{Value, json};
use wingbeat_api::{Access, SignIn};
use wingbeat_ground::remote::{Fault, Remote};
use wingbeat_ground::users::PASSWORD_MAX;
use wingbeat_keys::file;

/// A session's file is no longer.
const SESSION_LEN_MAX: usize = 4096;

/// Where the service is, and how its answer is shown.
#[derive(Args, Clone, Debug)]
pub(crate) struct Service {
    /// The ground service: HOST:PORT, http://HOST:PORT or https://HOST:PORT.
    #[arg(long, value_name = "ADDRESS", env = "WINGBEAT_GROUND", default_value = "127.0.0.1:8700")]
    pub(crate) ground: String,
    #[command(flatten)]
    pub(crate) credentials: Credentials,
    /// Print JSON, refusals on standard error too.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who asks, and whose certificate is believed.
#[derive(Args, Clone, Debug)]
pub(crate) struct Credentials {
    /// The authority that signed the service's certificate, in PEM: the fleet's pages.crt. With it the service is reached by TLS.
    #[arg(long, value_name = "FILE", env = "WINGBEAT_TRUST")]
    trust: Option<PathBuf>,
    /// Sign in as this user for this one command, and out after it. Without it the session of `wingbeat fleet sign-in` is used.
    #[arg(long, value_name = "NAME", env = "WINGBEAT_USER")]
    user: Option<String>,
    /// The file whose first line is the user's password. Without it: WINGBEAT_PASSWORD, or it is asked for at a terminal.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The folder of the sessions of `wingbeat fleet sign-in`.
    #[arg(long, value_name = "DIR", env = "WINGBEAT_SESSIONS")]
    sessions: Option<PathBuf>,
}

/// A service, and how the session with it ends.
pub(crate) struct Session {
    pub(crate) remote: Remote,
    /// It was begun for one command.
    is_passing: bool,
}

impl Session {
    /// Signs out where the session was for one command.
    pub(crate) async fn close(mut self) {
        if self.is_passing {
            // It ends with its time otherwise.
            let _ = self.remote.sign_out().await;
        }
    }
}

impl Credentials {
    /// The service, with a session where there is one.
    pub(crate) async fn open(&self, ground: &str) -> Result<Session> {
        let mut remote = Remote::new(ground, self.trust.as_deref())?;
        if self.user.is_some() {
            self.begin(&mut remote).await?;
            return Ok(Session { remote, is_passing: true });
        }
        if let Some(file) = self.file(&remote)?
            && file.exists()
        {
            remote.set_session(Some(kept(&file, remote.address())?));
        }
        Ok(Session { remote, is_passing: false })
    }

    async fn begin(&self, remote: &mut Remote) -> Result<Access> {
        if remote.is_open() {
            bail!(
                "{}: found no TLS on the way to another computer, where the password would be read, expected https:// and --trust",
                remote.address()
            );
        }
        let Some(name) = self.user.clone() else {
            bail!("--user: found none, expected the name of a user (wingbeat ground users)");
        };
        let password = self.password(&name)?;
        Ok(remote.sign_in(&SignIn { name, password }).await?)
    }

    fn password(&self, name: &str) -> Result<String> {
        const EXPECTED: &str = "expected a password in its first line";
        if let Some(path) = &self.password_file {
            let mut text = String::new();
            let most = u64::try_from(PASSWORD_MAX + 2).unwrap_or(u64::MAX);
            let read = std::fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
            read.map_err(|error| anyhow!("--password-file {}: found {error}, {EXPECTED}", path.display()))?;
            let password = text.lines().next().unwrap_or_default().to_owned();
            if password.is_empty() {
                bail!("--password-file {}: found none, {EXPECTED}", path.display());
            }
            return Ok(password);
        }
        if let Ok(password) = std::env::var("WINGBEAT_PASSWORD") {
            return Ok(password);
        }
        if !std::io::stdin().is_terminal() {
            bail!(
                "password of {name}: found none and no terminal to ask at, expected --password-file or WINGBEAT_PASSWORD"
            );
        }
        rpassword::prompt_password(format!("Password of {name}: ")).context("password")
    }

    /// Where the session with this service is kept; none where the user has no folder for it.
    fn file(&self, remote: &Remote) -> Result<Option<PathBuf>> {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let own = || {
            let runtime = var("XDG_RUNTIME_DIR").map(|folder| folder.join("wingbeat"));
            runtime
                .or_else(|| var("LOCALAPPDATA").map(|folder| folder.join("wingbeat").join("sessions")))
                .or_else(|| var("HOME").map(|folder| folder.join(".cache").join("wingbeat")))
        };
        let name: String = remote
            .address()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' })
            .collect();
        Ok(self.sessions.clone().or_else(own).map(|folder| folder.join(format!("session-{name}.json"))))
    }
}

/// The session's cookie, which is given to the service that made it alone.
fn kept(path: &Path, address: &str) -> Result<String> {
    let expected = "a session of wingbeat fleet sign-in";
    let text = file::read_text(path, SESSION_LEN_MAX, expected)
        .map_err(|refused| anyhow!("found {}, expected {}", refused.found, refused.expected))?;
    let kept: Value = serde_json::from_str(&text).unwrap_or_default();
    match (kept["ground"].as_str(), kept["session"].as_str()) {
        (Some(ground), Some(session)) if ground == address => Ok(session.to_owned()),
        _ => bail!("{}: found another file, expected {expected} with {address}", path.display()),
    }
}

/// Begins a session that later commands use.
pub(crate) async fn sign_in(service: &Service) -> Result<Access> {
    let mut remote = Remote::new(&service.ground, service.credentials.trust.as_deref())?;
    let access = service.credentials.begin(&mut remote).await?;
    let file = service.credentials.file(&remote)?;
    let file =
        file.context("--sessions: found no folder of this user, expected one for the session's file")?;
    let written = || -> std::io::Result<()> {
        file::make_folder(file.parent().unwrap_or(Path::new(".")))?;
        let kept = json!({ "ground": remote.address(), "session": remote.session() });
        file::write_private(&file, &kept.to_string())
    };
    written().with_context(|| format!("{}: the session is not kept", file.display()))?;
    Ok(access)
}

/// Ends the kept session, and forgets it.
pub(crate) async fn sign_out(service: &Service) -> Result<()> {
    let mut remote = Remote::new(&service.ground, service.credentials.trust.as_deref())?;
    let file = service.credentials.file(&remote)?;
    let Some(file) = file.filter(|file| file.exists()) else {
        bail!("{}: found no session, expected one of wingbeat fleet sign-in", remote.address());
    };
    let session = kept(&file, remote.address());
    std::fs::remove_file(&file).with_context(|| file.display().to_string())?;
    remote.set_session(Some(session?));
    match remote.sign_out().await {
        // It had ended.
        Err(fault) if fault.asks_for_session() => Ok(()),
        other => Ok(other?),
    }
}

/// What a person reads of a failure, with what to do where a session is missing.
pub(crate) fn advice(fault: &Fault) -> &'static str {
    if fault.asks_for_session() {
        " (wingbeat fleet sign-in --user NAME, or --user with each command)"
    } else {
        ""
    }
}
