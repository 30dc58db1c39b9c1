//! The machine apart from its files: programs, the clock, its addresses.

use std::{
    net::{IpAddr, UdpSocket},
    process::{Command, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use super::Finding;

/// What the checks ask of the machine apart from its files.
pub trait System: Send + Sync {
    /// What a program prints.
    ///
    /// # Errors
    /// One line: it is not installed, or what it complained about.
    fn output(&self, program: &str, arguments: &[&str]) -> Result<String, String>;

    /// Seconds since 1970.
    fn unix_time_s(&self) -> u64;

    /// Whether an address is this machine's.
    fn is_own_address(&self, address: IpAddr) -> bool;
}

/// The machine that runs this.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel;

impl System for Kernel {
    fn output(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        // `iw` lives where the path of an ordinary user does not lead.
        let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        let output = Command::new(program)
            .args(arguments)
            .env("PATH", path)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => format!("{program} not installed"),
                _ => format!("{program}: {error}"),
            })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let complaint = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " ");
        Err(format!("{program}: {complaint}"))
    }

    fn unix_time_s(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    fn is_own_address(&self, address: IpAddr) -> bool {
        // The kernel refuses to bind to an address that is not the machine's.
        UdpSocket::bind((address, 0)).is_ok()
    }
}

/// Before this the software did not exist: a Raspberry Pi without a battery-backed clock starts in the past.
const YEAR_LEAST: u64 = 2025;

/// Whether the clock is set.
pub(super) fn clock(system: &dyn System) -> Finding {
    let (year, month, day) = date(system.unix_time_s() / 86_400);
    let today = format!("{year:04}-{month:02}-{day:02}");
    let cure = "connect to a time server once (systemd-timesyncd or chrony), or fit a real-time clock";
    if year < YEAR_LEAST {
        let expected = format!("the date, {YEAR_LEAST} or later");
        return Finding::fault("clock", format!("{today}: the clock is not set"), expected, cure);
    }
    match system.output("timedatectl", &["show", "--property=NTPSynchronized", "--value"]) {
        Ok(answer) if answer.trim() == "yes" => Finding::ok("clock", format!("{today}, synchronised")),
        Ok(_) => Finding::warning(
            "clock",
            format!("{today}, not synchronised since the start"),
            "a synchronised clock: logs of several aircraft are compared by it",
            cure,
        ),
        Err(problem) => Finding::ok("clock", format!("{today}, synchronisation unknown ({problem})")),
    }
}

/// Year, month and day of a number of days since 1970 in the Gregorian calendar: counted in years that begin
/// in March, so that a leap day is the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468; // since 0000-03-01
    const DAYS_PER_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970;
    let (era, day_of_era) = (days / DAYS_PER_400_YEARS, days % DAYS_PER_400_YEARS);
    let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (31 + 28, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_088, (2024, 12, 31)),
            (20_089, (2025, 1, 1)),
            (20_778, (2026, 11, 21)),
        ] {
            assert_eq!(date(days), expected, "{days}");
        }
    }

    #[test]
    fn a_program_that_is_missing_or_fails_is_named() {
        assert_eq!(Kernel.output("wingbeat-no-such", &[]), Err("wingbeat-no-such not installed".into()));
        assert!(Kernel.output("ls", &["/wingbeat-no-such"]).unwrap_err().starts_with("ls: "));
        assert_eq!(Kernel.output("echo", &["one"]), Ok("one\n".into()));
    }

    #[test]
    fn an_address_of_this_machine_is_known() {
        assert!(Kernel.is_own_address([127, 0, 0, 1].into()));
        assert!(!Kernel.is_own_address([192, 0, 2, 1].into()), "reserved for documents");
    }
}
