//! Serves a simulated flight controller in real time behind a pseudo-terminal, as a Pixhawk's TELEM port is
//! served behind a serial line.
//!
//! The line behaves like a wire: bytes that no program reads are lost, and the flight continues whether or not the
//! device is open. It does not pace: a baud rate is accepted and has no effect.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::pty::{self, OpenptFlags};
use rustix::termios::{self, OptionalActions};
use tokio::time::sleep_until;
use wingbeat_radio::Clock;
use wingbeat_sim::flight_controller::FlightController;

/// A pseudo-terminal with a name of its own. Dropping it takes the name away.
#[derive(Debug)]
pub struct Line {
    /// The flight controller's end, which never blocks.
    near: File,
    link: PathBuf,
    device: PathBuf,
}

impl Line {
    /// Makes a pseudo-terminal and a symbolic link to its device at `link`.
    ///
    /// # Errors
    /// There is something at `link` already, other than a link that an earlier line left behind, or no
    /// pseudo-terminal can be made.
    pub fn new(link: &Path) -> io::Result<Self> {
        let (near, device) = pseudo_terminal()?;
        // A link whose device is gone is ours from an earlier run; anything else is not ours.
        if link.is_symlink() && !link.exists() {
            std::fs::remove_file(link)?;
        }
        symlink(&device, link)?;
        Ok(Self { near, link: link.to_owned(), device })
    }

    /// The device's own name.
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// Makes the device free again after a program closed it.
    ///
    /// A program that opens a serial line exclusively (TIOCEXCL) and is killed leaves it free on real hardware. On a
    /// pseudo-terminal the lock stays for as long as our end is open, and then only root can open it again. So we
    /// open it and unlock it; or we put another device behind the link.
    fn release(&mut self, fc: &mut FlightController) {
        let flags = (OFlags::NOCTTY | OFlags::NONBLOCK).bits().cast_signed();
        match File::options().read(true).write(true).custom_flags(flags).open(&self.device) {
            Ok(far) => {
                // Closing it frees it too.
                let _ = termios::ioctl_tiocnxcl(&far);
            }
            // Another program has opened it in the meantime.
            Err(_) if self.read(fc) => {}
            Err(_) => {
                // Without another device this one stays as it is: locked, until we end.
                let Ok((near, device)) = pseudo_terminal() else { return };
                let ours = std::fs::read_link(&self.link).is_ok_and(|target| target == self.device);
                if ours && std::fs::remove_file(&self.link).is_ok() && symlink(&device, &self.link).is_ok() {
                    (self.near, self.device) = (near, device);
                }
            }
        }
    }

    /// Reads what has come; false while no program has the device open.
    fn read(&mut self, fc: &mut FlightController) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.near.read(&mut buffer) {
                Ok(0) => return false,
                Ok(length) => fc.receive(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // EIO: the other end is not open.
                Err(_) => return false,
            }
        }
    }

    /// Writes what fits; the rest is lost, as on a wire.
    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.near.write(bytes) {
                Ok(length) if length > 0 => bytes = &bytes[length..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }
}

/// Returns our end of a new pseudo-terminal, and the name of the other end, which is not open.
///
/// Both ends are close-on-exec from the beginning: a program that another thread starts in this moment would keep the
/// line open otherwise.
fn pseudo_terminal() -> io::Result<(File, PathBuf)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let near = pty::openpt(flags)?;
    pty::grantpt(&near)?;
    pty::unlockpt(&near)?;
    let mut raw = termios::tcgetattr(&near)?;
    raw.make_raw();
    termios::tcsetattr(&near, OptionalActions::Now, &raw)?;
    rustix::io::ioctl_fionbio(&near, true)?;
    let device = PathBuf::from(OsString::from_vec(pty::ptsname(&near, Vec::new())?.into_bytes()));
    // Our end reports a closed line only after the other end was open once.
    drop(pty::ioctl_tiocgptpeer(&near, flags)?);
    Ok((File::from(near), device))
}

impl Drop for Line {
    fn drop(&mut self) {
        // Only if it is still ours.
        if std::fs::read_link(&self.link).is_ok_and(|target| target == self.device) {
            let _ = std::fs::remove_file(&self.link);
        }
    }
}

/// Serves `fc` on `line` until the future is dropped; `watch` sees it after every tick.
pub async fn flight_controller(
    mut line: Line,
    mut fc: FlightController,
    clock: Clock,
    mut watch: impl FnMut(&mut FlightController),
) {
    wingbeat_hub::serve::follow_utc(&mut fc, clock);
    let mut out = Vec::new();
    let mut was_open = false;
    loop {
        // The flight controller reads its line once per tick, and so do we.
        sleep_until(clock.kernel(fc.poll_timeout())).await;
        let open = line.read(&mut fc);
        if was_open && !open {
            line.release(&mut fc);
        }
        was_open = open;
        out.clear();
        fc.advance(clock.now(), &mut out);
        watch(&mut fc);
        if open {
            line.write(&out);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::time::Duration;

    use super::{Line, flight_controller};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::timeout;
    use tokio_serial::{SerialPortBuilderExt as _, SerialStream};
    use wingbeat_geo::{Instant, Position};
    use wingbeat_radio::Clock;
    use wingbeat_sim::flight_controller::{Config, FlightController};

    fn open(path: &Path) -> SerialStream {
        tokio_serial::new(path.to_string_lossy(), 921_600).open_native_async().unwrap()
    }

    /// Whether a heartbeat of system 7 comes within the test's patience.
    async fn heartbeat(stream: &mut SerialStream) -> bool {
        let mut decoder = wingbeat_autopilot::codec::Decoder::default();
        let mut seen = false;
        let mut buffer = [0; 512];
        while !seen {
            let Ok(Ok(n)) = timeout(Duration::from_secs(20), stream.read(&mut buffer)).await else {
                return false;
            };
            decoder.push(&buffer[..n], |frame| seen |= frame.header.system_id == 7);
        }
        true
    }

    #[tokio::test]
    async fn the_device_is_opened_by_its_link_closed_and_opened_again_and_the_link_goes_with_the_line() {
        let folder = tempfile::TempDir::new().unwrap();
        let link = folder.path().join("ttyTELEM2");
        let line = Line::new(&link).unwrap();
        assert_eq!(std::fs::read_link(&link).unwrap(), line.device());
        let home = Position::from_degrees(39.48, -0.34, 10.0).unwrap();
        let fc = FlightController::new(Config::new(7, home), 1, Instant::ZERO);
        let server = tokio::spawn(flight_controller(line, fc, Clock::start(20.0).unwrap(), |_| {}));

        let mut first = open(&link);
        assert!(heartbeat(&mut first).await);
        first.write_all(&[0xfd, 0x00, 0x31, 0x77, 0xfe, 0x12].repeat(200)).await.unwrap();
        assert!(heartbeat(&mut first).await, "garbage is harmless");
        drop(first);
        let mut second = open(&link);
        assert!(heartbeat(&mut second).await);

        server.abort();
        assert!(server.await.unwrap_err().is_cancelled());
        assert!(!link.is_symlink(), "it is taken away");
    }

    #[test]
    fn a_program_that_is_started_does_not_inherit_the_line() {
        let folder = tempfile::TempDir::new().unwrap();
        let line = Line::new(&folder.path().join("line")).unwrap();
        assert!(rustix::io::fcntl_getfd(&line.near).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        let listed = std::process::Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(!listed.contains("ptmx") && !listed.contains(&*line.device().to_string_lossy()), "{listed}");
    }

    #[tokio::test]
    async fn a_file_that_is_not_ours_is_left_alone_and_a_dead_link_is_replaced() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "mine").unwrap();
        assert_eq!(Line::new(&file).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        let link = folder.path().join("link");
        symlink("/dev/pts/no-such-device", &link).unwrap();
        drop(Line::new(&link).unwrap());
        assert!(!link.is_symlink());
    }
}
