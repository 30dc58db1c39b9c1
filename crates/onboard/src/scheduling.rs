//! What a loaded computer must not starve: raised priority, memory that stays in memory, and how another process fares.

use std::{fs, io, os::fd::BorrowedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
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

/// Returns a sample of a process; none where the system shows nothing of it. `handle` names the process for ever: with it alone
/// is known that a process has ended which the system hides.
pub(crate) fn sample(pid: Pid, handle: Option<BorrowedFd<'_>>) -> Option<Process> {
    if handle.is_some_and(has_ended) {
        let (state, ran, waited) = (ProcessState::Ended, Duration::ZERO, None);
        return Some(Process { state, ran, waited, load_percent: load() });
    }
    let pid = pid.as_raw_nonzero();
    let (mut states, mut ran_ns, mut waited_ns) = (vec![], 0, None);
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        // A thread that has ended meanwhile.
        let Ok(stat) = fs::read_to_string(task.path().join("stat")) else { continue };
        states.extend(state(&stat));
        let Ok(line) = fs::read_to_string(task.path().join("schedstat")) else { continue };
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        ran_ns += numbers.next().unwrap_or(0);
        waited_ns = numbers.next().map(|ns| waited_ns.unwrap_or(0) + ns).or(waited_ns);
    }
    let [ran, waited] =
        [Some(ran_ns), waited_ns].map(|ns| ns.map(|ns: u64| Duration::from_micros(ns / 1_000)));
    Some(Process { state: of_all(&states)?, ran: ran.unwrap_or_default(), waited, load_percent: load() })
}

/// Whether the process of a handle has ended.
fn has_ended(handle: BorrowedFd<'_>) -> bool {
    let mut handles = [PollFd::from_borrowed_fd(handle, PollFlags::IN)];
    poll(&mut handles, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ended| ended > 0)
}

/// Returns the state of a process by those of its threads: one that waits for a disk may be the one that flies.
fn of_all(threads: &[ProcessState]) -> Option<ProcessState> {
    let order = [
        ProcessState::WaitsForDisk,
        ProcessState::Runnable,
        ProcessState::Stopped,
        ProcessState::Sleeps,
        ProcessState::Ended,
    ];
    order.into_iter().find(|state| threads.contains(state))
}

/// Returns the state in a line of `/proc/PID/task/TID/stat`: the letter behind the name, which may hold anything.
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
    use std::os::fd::AsFd as _;

    use rustix::process::{PidfdFlags, pidfd_open};

    use super::*;

    #[test]
    fn a_process_waits_for_a_disk_where_any_of_its_threads_does() {
        use ProcessState::{Ended, Runnable, Sleeps, Stopped, WaitsForDisk};
        for (threads, expected) in [
            (&[Sleeps, Runnable, WaitsForDisk][..], Some(WaitsForDisk)),
            (&[Sleeps, Runnable], Some(Runnable)),
            (&[Stopped, Stopped], Some(Stopped)),
            // The first thread has ended, and the others go on.
            (&[Ended, Sleeps], Some(Sleeps)),
            (&[Ended], Some(Ended)),
            (&[], None),
        ] {
            assert_eq!(of_all(threads), expected, "{threads:?}");
        }
    }

    #[test]
    fn a_process_is_seen_as_it_is() {
        assert_eq!(state("12 (a) b) T 1 2"), Some(ProcessState::Stopped));
        assert_eq!(state("12 (x) Z 1"), Some(ProcessState::Ended));
        assert_eq!((state(""), state("12 (x)")), (None, None));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let handle = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let seen = |handle| sample(pid, handle).map(|process| process.state);
        let handle = Some(handle.as_fd());
        assert!(matches!(
            seen(handle),
            Some(ProcessState::Sleeps | ProcessState::Runnable | ProcessState::WaitsForDisk)
        ));
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        while seen(handle) != Some(ProcessState::Stopped) {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        while seen(handle) != Some(ProcessState::Ended) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        // No process has this number: the handle alone says that it ended, and it may be hidden.
        assert_eq!((seen(handle), seen(None)), (Some(ProcessState::Ended), None));
        let own = sample(rustix::process::getpid(), None).unwrap();
        assert!(own.ran > Duration::ZERO, "{own:?}");
    }
}
