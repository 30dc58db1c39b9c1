//! The certificate of the page: browsers know a service by one, and the fleet's keys are none that they take.
//!
//! A fleet has an authority for pages besides that of its keys. What it signs is worth nothing to aircraft, and
//! what a browser is made to trust is this one authority, for the names that it signed.
//!
//! | file of the fleet's folder | |
//! |---|---|
//! | `pages.key` | the authority's secret, mode 600 |
//! | `pages.crt` | its certificate: what browsers are made to trust |

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use jiff::tz::Offset;
use jiff::{Span, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// The authority's certificate, in the fleet's folder.
pub const AUTHORITY_CERTIFICATE: &str = "pages.crt";
const AUTHORITY_KEY: &str = "pages.key";
/// The page's certificate, in its console's folder.
pub const PAGE_CERTIFICATE: &str = "page.crt";
/// The page's key, in its console's folder.
pub const PAGE_KEY: &str = "page.key";
/// Browsers take no certificate that holds for longer (CA/Browser Forum, Baseline Requirements 6.3.2), days.
const PAGE_DAYS: i64 = 397;
/// The authority's is taken out of browsers by hand, years.
const AUTHORITY_YEARS: i64 = 10;
/// Names of one certificate.
const NAMES_MAX: usize = 32;

/// Why no certificate is made.
#[derive(Debug, thiserror::Error)]
#[error("{}: found {found}, expected {expected}", .path.display())]
pub struct CertificateError {
    path: PathBuf,
    found: String,
    expected: &'static str,
}

fn refused(path: &Path, found: impl fmt::Display, expected: &'static str) -> CertificateError {
    CertificateError { path: path.into(), found: found.to_string(), expected }
}

/// Makes the authority for the pages of a fleet, where there is none yet.
///
/// # Errors
/// The folder cannot be written.
pub fn init(folder: &Path) -> Result<(), CertificateError> {
    let (certificate, key) = (folder.join(AUTHORITY_CERTIFICATE), folder.join(AUTHORITY_KEY));
    if certificate.exists() {
        return Ok(());
    }
    // The key of an attempt that was interrupted has signed nothing.
    let secret = KeyPair::generate().map_err(|error| refused(&key, error, "a key that is made"))?;
    write(&key, &secret.serialize_pem(), 0o600)?;
    let signed =
        authority().self_signed(&secret).map_err(|error| refused(&certificate, error, "a certificate"))?;
    write(&certificate, &signed.pem(), 0o644)
}

/// Makes a key and a certificate for the page of a console, under the names by which it is opened. `folder` is the
/// fleet's, `console` where they are put; those that are there are replaced.
///
/// # Errors
/// The fleet has no authority for pages, a name is none, or the folder cannot be written.
pub fn issue(folder: &Path, console: &Path, names: &[String]) -> Result<(), CertificateError> {
    const NO_AUTHORITY: &str = "the key of the fleet's authority for pages (wingbeat fleet init makes it)";
    let authority_key = folder.join(AUTHORITY_KEY);
    let text =
        fs::read_to_string(&authority_key).map_err(|error| refused(&authority_key, error, NO_AUTHORITY))?;
    let key = KeyPair::from_pem(&text).map_err(|error| refused(&authority_key, error, NO_AUTHORITY))?;
    let certificate = console.join(PAGE_CERTIFICATE);
    let is_name = |name: &String| {
        name.parse::<IpAddr>().is_ok()
            || (!name.is_empty()
                && name.len() <= 253
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')))
    };
    if let Some(found) = names.iter().find(|name| !is_name(name)) {
        return Err(refused(&certificate, format!("the name {found:?}"), "a host name or an IP address"));
    }
    if names.is_empty() || names.len() > NAMES_MAX {
        return Err(refused(&certificate, format!("{} names", names.len()), "1 to 32"));
    }
    let made = || -> Result<_, rcgen::Error> {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "Wingbeat PC Companion");
        params.key_usages.push(KeyUsagePurpose::DigitalSignature);
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        params.use_authority_key_identifier_extension = true;
        hold(&mut params, Span::new().days(PAGE_DAYS));
        let own = KeyPair::generate()?;
        let signed = params.signed_by(&own, &Issuer::new(authority(), key))?;
        Ok((own.serialize_pem(), signed.pem()))
    };
    let (own, signed) = made().map_err(|error| refused(&certificate, error, "a certificate"))?;
    write(&console.join(PAGE_KEY), &own, 0o600)?;
    write(&certificate, &signed, 0o644)
}

/// What is certified of the authority: the same each time, so that what it signs names it.
fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Wingbeat fleet: pages");
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    hold(&mut params, Span::new().years(AUTHORITY_YEARS));
    params
}

/// From yesterday on: the clocks of a field are not the same.
fn hold(params: &mut CertificateParams, span: Span) {
    let today = Offset::UTC.to_datetime(Timestamp::now()).date();
    let date = |date: Date| {
        rcgen::date_time_ymd(i32::from(date.year()), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    params.not_before = date(today.yesterday().unwrap_or(today));
    params.not_after = date(today.saturating_add(span));
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), CertificateError> {
    let written = || -> io::Result<()> {
        let new = path.with_extension(format!("new-{}", std::process::id()));
        let _ = fs::remove_file(&new);
        let mut file = wingbeat_keys::file::create_new(&new, mode)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        wingbeat_keys::file::sync_folder(path)
    };
    written().map_err(|error| refused(path, error, "a file that can be written"))
}
