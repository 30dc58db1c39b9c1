//! What a loaded computer must not starve: raised priority, memory that stays in memory, and how another process fares.

use std::{fs, io};

use rustix::{
    mm::{MlockAllFlags, mlockall},
    process::{Pid, Resource, getrlimit, setpriority_process},
    thread::gettid,
};
use wingbeat_agent::guardian::{Process, ProcessState};
use wingbeat_geo::Duration;

/// The highest priority that is no real-time one: against a usual process it gets the processor at once, and where it
/// runs away it starves nothing.
const NICE_LEAST: i32 = -20;

/// Raises the priority of the calling thread.
///
/// # Errors
/// The system does not permit it (systemd: `LimitNICE=-20`).
pub(crate) fn raise_thread() -> io::Result<()> {
    Ok(setpriority_process(Some(gettid()), NICE_LEAST)?)
}

/// Keeps the memory of this process in memory, as far as it is used. Returns false where its amount is limited: beyond the
/// limit every later allocation would fail.
///
/// # Errors
/// The system does not permit it (systemd: `LimitMEMLOCK=infinity`).
pub fn lock_memory() -> io::Result<bool> {
    if getrlimit(Resource::Memlock).current.is_some() {
        return Ok(false);
    }
    // As pages are used: the stacks of threads are mostly not.
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?;
    Ok(true)
}

/// Returns a sample of a process; none where the system shows nothing of it.
pub(crate) fn sample(pid: Pid) -> Option<Process> {
    let pid = pid.as_raw_nonzero();
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && fs::exists("/proc/self/stat").is_ok_and(|is| is) =>
        {
            let state = ProcessState::Ended;
            return Some(Process {
                state,
                ran: Duration::ZERO,
                waited: Duration::ZERO,
                load_percent: load(),
            });
        }
        Err(_) => return None,
    };
    let state = state(&stat)?;
    let (mut ran_ns, mut waited_ns) = (0, 0);
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        // A thread that has ended meanwhile.
        let Ok(line) = fs::read_to_string(task.path().join("schedstat")) else { continue };
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        ran_ns += numbers.next().unwrap_or(0);
        waited_ns += numbers.next().unwrap_or(0);
    }
    let [ran, waited] = [ran_ns, waited_ns].map(|ns: u64| Duration::from_micros(ns / 1_000));
    Some(Process { state, ran, waited, load_percent: load() })
}

/// Returns the state in a line of `/proc/PID/stat`: the letter behind the name, which may hold anything.
fn state(stat: &str) -> Option<ProcessState> {
    let letter = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    Some(match letter {
        'Z' | 'X' | 'x' => ProcessState::Ended,
        'T' | 't' => ProcessState::Stopped,
        'R' => ProcessState::Runnable,
        'D' => ProcessState::WaitsForDisk,
        _ => ProcessState::Sleeps,
    })
}

/// Returns the load of the last minute, hundredths; 0 where it is not shown.
fn load() -> u32 {
    let load = fs::read_to_string("/proc/loadavg").ok();
    let load = load.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    load.map_or(0, |load| (load * 100.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_seen_as_it_is() {
        assert_eq!(state("12 (a) b) T 1 2"), Some(ProcessState::Stopped));
        assert_eq!(state("12 (x) Z 1"), Some(ProcessState::Ended));
        assert_eq!((state(""), state("12 (x)")), (None, None));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(matches!(
            sample(pid).unwrap().state,
            ProcessState::Sleeps | ProcessState::Runnable | ProcessState::WaitsForDisk
        ));
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        while sample(pid).unwrap().state != ProcessState::Stopped {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        while sample(pid).unwrap().state != ProcessState::Ended {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert_eq!(sample(pid).unwrap().state, ProcessState::Ended, "no process has this number");
        let own = sample(rustix::process::getpid()).unwrap();
        assert!(own.ran > Duration::ZERO, "{own:?}");
    }
}
