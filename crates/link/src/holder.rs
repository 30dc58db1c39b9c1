//! What else holds a serial device: a program, a login console, or the kernel's own console.
//!
//! Everything is read below a root directory, so that a test can lay out a `/proc` of its own.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

/// Programs that offer a login on a serial line, by the name that the kernel knows them by.
const LOGINS: [&str; 4] = ["agetty", "getty", "mgetty", "login"];

/// What holds a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A process that has it open.
    Process {
        /// Process id.
        id: u32,
        /// The name of its program, at most 15 bytes.
        name: String,
    },
    /// The kernel writes its messages there (`console=` on its command line).
    KernelConsole {
        /// The console's name in `/proc/consoles`, for example `ttyAMA0`.
        name: String,
    },
}

impl Holder {
    /// Whether it is a console: a login, or the kernel's.
    pub fn is_console(&self) -> bool {
        match self {
            Self::Process { name, .. } => LOGINS.contains(&name.as_str()),
            Self::KernelConsole { .. } => true,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { id, name } => write!(f, "process {id} ({name})"),
            Self::KernelConsole { name } => write!(f, "the kernel's console {name}"),
        }
    }
}

/// The processes that have the device open, as far as this user may see: `/proc/PID/fd` of other users is hidden. Processes
/// come first, because a kernel console does not prevent opening and only writes when it has a message.
pub fn holder(device: &Path, root: &Path) -> Option<Holder> {
    let device = device.canonicalize().ok()?;
    process(&device, &root.join("proc"))
}

/// The kernel's console on this device, if there is one: by the device's numbers, because inside a container
/// another device may have the console's name.
pub fn kernel_console(device: &Path, root: &Path) -> Option<Holder> {
    let numbers = numbers(device_number(device)?);
    let consoles = fs::read_to_string(root.join("proc/consoles")).ok()?;
    consoles.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        (words.last()? == numbers).then(|| Holder::KernelConsole { name: name.to_owned() })
    })
}

/// Of a device; none on systems that number none.
fn device_number(device: &Path) -> Option<u64> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::MetadataExt::rdev(&fs::metadata(device).ok()?));
    #[cfg(not(unix))]
    {
        let _ = device;
        None
    }
}

/// `major:minor` of a Linux device number (makedev(3)).
fn numbers(device: u64) -> String {
    let major = (device >> 8) & 0xfff | (device >> 32) & !0xfff;
    let minor = device & 0xff | (device >> 12) & !0xff;
    format!("{major}:{minor}")
}

fn process(device: &Path, proc: &Path) -> Option<Holder> {
    let mut processes: Vec<(u32, PathBuf)> = fs::read_dir(proc)
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))
        })
        .collect();
    processes.sort();
    processes.into_iter().find_map(|(id, process)| {
        let open = fs::read_dir(process.join("fd"))
            .ok()?
            .filter_map(Result::ok)
            .any(|descriptor| fs::read_link(descriptor.path()).is_ok_and(|target| target == device));
        let name = || fs::read_to_string(process.join("comm")).unwrap_or_default().trim().to_owned();
        open.then(|| Holder::Process { id, name: name() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root directory of its own, removed at the end of the test.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("wingbeat-holder-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("dev")).unwrap();
            fs::write(path.join("dev/ttyAMA0"), "").unwrap();
            Self(path)
        }
        fn process(&self, id: &str, name: &str, target: &Path) {
            let folder = self.0.join("proc").join(id);
            fs::create_dir_all(folder.join("fd")).unwrap();
            fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
            std::os::unix::fs::symlink(target, folder.join("fd/5")).unwrap();
        }
        fn device(&self) -> PathBuf {
            self.0.join("dev/ttyAMA0").canonicalize().unwrap()
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_login_is_distinguished_from_another_program_and_from_a_free_device() {
        let root = Root::new("login");
        assert_eq!(holder(&root.device(), &root.0), None, "no /proc at all");
        root.process("1", "systemd", Path::new("/dev/null"));
        root.process("net", "minicom", &root.device());
        assert_eq!(holder(&root.device(), &root.0), None, "not a process's number");
        root.process("200", "minicom", &root.device());
        let found = holder(&root.device(), &root.0).unwrap();
        assert_eq!((found.to_string().as_str(), found.is_console()), ("process 200 (minicom)", false));
        root.process("30", "agetty", &root.device());
        let found = holder(&root.device(), &root.0).unwrap();
        assert_eq!((found.to_string().as_str(), found.is_console()), ("process 30 (agetty)", true));
    }

    #[test]
    fn the_kernels_console_is_known_by_its_numbers() {
        let root = Root::new("console");
        let null = Path::new("/dev/null");
        assert_eq!(kernel_console(null, &root.0), None);
        fs::create_dir_all(root.0.join("proc")).unwrap();
        let console = |numbers: &str| {
            let text = format!(
                "tty1                 -WU (EC  p  )    4:1\nttyAMA0              -W- (EC  p a)  {numbers}\n"
            );
            fs::write(root.0.join("proc/consoles"), text).unwrap();
            kernel_console(null, &root.0)
        };
        let found = console("1:3").unwrap();
        assert_eq!((found.to_string().as_str(), found.is_console()), ("the kernel's console ttyAMA0", true));
        assert_eq!(console("1:30"), None);
        assert_eq!(console("204:64"), None);
    }

    #[test]
    fn device_numbers_are_split_as_the_kernel_joins_them() {
        assert_eq!(numbers(0xcc40), "204:64");
        assert_eq!(numbers(0x0010_8801), "136:257", "the 257th pseudo-terminal");
    }
}
