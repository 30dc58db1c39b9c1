//! Whether every task of the daemon still turns.
//!
//! Each long-lived task is entered once, by its name and by the longest time that one turn of its loop may
//! take, and says [`TaskWatchdog::turned`] at every turn. A loop that has nothing to do turns too, by a timer of its
//! own, so that silence always means a task that hangs or has ended. Whoever feeds a watchdog asks
//! [`Liveness::late`] first: a daemon of which one part hangs is not half alive, it is to be started again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// The tasks of a daemon, each with its last sign of life. Clones share them.
#[derive(Clone, Debug)]
pub struct Liveness {
    since: Instant,
    tasks: Vec<Arc<Task>>,
}

#[derive(Debug)]
struct Task {
    name: &'static str,
    limit: Duration,
    since: Instant,
    /// Milliseconds from `since` to the last turn.
    turned_ms: AtomicU64,
}

/// A task's way of saying that it lives.
#[derive(Clone, Debug)]
pub struct TaskWatchdog(Arc<Task>);

/// A task that has been silent for longer than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Which.
    pub name: &'static str,
    /// For how long.
    pub silence: Duration,
    /// For how long it may.
    pub limit: Duration,
}

impl Default for Liveness {
    fn default() -> Self {
        Self { since: Instant::now(), tasks: Vec::new() }
    }
}

impl Liveness {
    /// Enters a task, which counts as having turned just now.
    pub fn task(&mut self, name: &'static str, limit: Duration) -> TaskWatchdog {
        let task = Arc::new(Task { name, limit, since: self.since, turned_ms: AtomicU64::new(0) });
        let watchdog = TaskWatchdog(task.clone());
        watchdog.feed();
        self.tasks.push(task);
        watchdog
    }

    /// Watches the tasks of `other` too.
    pub fn join(&mut self, other: &Self) {
        self.tasks.extend(other.tasks.iter().cloned());
    }

    /// The tasks' names, in the order in which they were entered.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tasks.iter().map(|task| task.name)
    }

    /// The task that is silent for longest beyond what it may be, if any is.
    pub fn late(&self) -> Option<Late> {
        self.tasks
            .iter()
            .map(|task| Late { name: task.name, silence: task.silence(), limit: task.limit })
            .filter(|late| late.silence > late.limit)
            .max_by_key(|late| late.silence - late.limit)
    }
}

impl Task {
    fn silence(&self) -> Duration {
        let turned = Duration::from_millis(self.turned_ms.load(Ordering::Relaxed));
        self.since.elapsed().saturating_sub(turned)
    }
}

impl TaskWatchdog {
    /// The task's loop has come round.
    pub fn feed(&self) {
        let elapsed_ms = self.0.since.elapsed().as_millis();
        self.0.turned_ms.store(u64::try_from(elapsed_ms).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_task_is_late_only_beyond_its_own_limit_and_the_worst_is_named() {
        let mut all = Liveness::default();
        let quick = all.task("quick", SECOND);
        let slow = all.task("slow", 4 * SECOND);
        advance(SECOND).await;
        assert_eq!(all.late(), None, "exactly its limit is in time");
        advance(SECOND).await;
        assert_eq!(all.late(), Some(Late { name: "quick", silence: 2 * SECOND, limit: SECOND }));
        quick.feed();
        assert_eq!(all.late(), None);
        advance(5 * SECOND).await;
        assert_eq!(all.late().map(|late| late.name), Some("quick"), "six seconds too many against three");
        quick.feed();
        assert_eq!(
            all.late().map(|late| late.name),
            Some("slow"),
            "one that turns does not speak for others"
        );
        slow.feed();
        assert_eq!(all.late(), None, "a task that comes back is alive");
    }

    #[tokio::test(start_paused = true)]
    async fn joined_registers_keep_their_own_times() {
        let mut first = Liveness::default();
        let one = first.task("one", SECOND);
        advance(10 * SECOND).await;
        let mut second = Liveness::default();
        let _two = second.task("two", SECOND);
        second.join(&first);
        assert!(second.names().eq(["two", "one"]));
        assert_eq!(second.late().map(|late| (late.name, late.silence)), Some(("one", 10 * SECOND)));
        one.feed();
        assert_eq!(second.late(), None);
    }
}
