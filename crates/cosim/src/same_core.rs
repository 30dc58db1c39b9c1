//! A thread and the program that it asks, on one core of the processor.
//!
//! One of both waits while the other works. On two cores each question and each answer wakes a core that sleeps, which in a virtual
//! machine takes 50 µs of a processor; on one core it is a change of process, 3 µs. Which core that is the system decides: once
//! in [`FREE_EVERY`] questions both may run anywhere, and stay then where the thread woke up, so that they leave a core that
//! another program wants.

use std::process::Child;
use std::sync::OnceLock;

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Often enough that a core which another program wants is left soon, seldom enough that it costs nothing.
const FREE_EVERY: u64 = 256;

/// The cores on which this process may run, as it was started.
static ALLOWED: OnceLock<CpuSet> = OnceLock::new();

/// Of one program.
#[derive(Debug)]
pub(crate) struct SameCore {
    program: Option<Pid>,
    allowed: CpuSet,
    /// Which thread was held to a core.
    held: Option<Pid>,
    is_free: bool,
    asked: u64,
}

impl SameCore {
    /// Of this program; it stays where it is until it is asked.
    pub(crate) fn with(child: &Child) -> Self {
        let allowed = *ALLOWED.get_or_init(|| sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new()));
        // On one core they are together anyway.
        let program = (allowed.count() > 1).then(|| Pid::from_child(child));
        Self { program, allowed, held: None, is_free: false, asked: 0 }
    }

    /// This thread asks now.
    pub(crate) fn before_asking(&mut self) {
        self.is_free = self.program.is_some() && self.asked.is_multiple_of(FREE_EVERY);
        self.asked += 1;
        if self.is_free {
            self.release();
        }
    }

    /// The answer is there.
    pub(crate) fn after_asking(&mut self) {
        let (true, Some(program)) = (self.is_free, self.program) else { return };
        let mut core = CpuSet::new();
        core.set(sched_getcpu());
        // A system that does not allow it decides as it did.
        if sched_setaffinity(None, &core).is_ok() {
            self.held = Some(gettid());
            let _ = sched_setaffinity(Some(program), &core);
        }
    }

    fn release(&mut self) {
        if let Some(thread) = self.held.take() {
            // It may have ended.
            let _ = sched_setaffinity(Some(thread), &self.allowed);
        }
    }
}

impl Drop for SameCore {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn both_are_on_one_core_until_it_ends() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let program = Pid::from_child(&child);
        let before = sched_getaffinity(None).unwrap();
        let mut same = SameCore::with(&child);
        for _ in 0..2 * FREE_EVERY {
            same.before_asking();
            same.after_asking();
            let now = sched_getaffinity(None).unwrap();
            if before.count() > 1 {
                assert_eq!(now.count(), 1);
            }
            assert_eq!(now, sched_getaffinity(Some(program)).unwrap());
        }
        drop(same);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
