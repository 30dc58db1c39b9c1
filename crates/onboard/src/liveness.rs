//! Whether the loop of every task of the daemon still runs.
//!
//! Each long-lived task is registered once, with its name and the longest time that one iteration of its loop may
//! take, and calls [`TaskWatchdog::feed`] at every iteration. An idle loop runs too, by a timer of its
//! own, so that a missing call always means a task that hangs or has ended. The task that feeds systemd's watchdog checks
//! [`Liveness::late`] first: a daemon of which one task hangs must be started again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// The tasks of a daemon, each with the time of its last iteration. Clones share them.
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
    /// Milliseconds from `since` to the last iteration.
    fed_ms: AtomicU64,
}

/// The watchdog of one task.
#[derive(Clone, Debug)]
pub struct TaskWatchdog(Arc<Task>);

/// A task whose last iteration is longer ago than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Name of the task.
    pub name: &'static str,
    /// Time since its last iteration.
    pub idle: Duration,
    /// Longest time that is allowed.
    pub limit: Duration,
}

impl Default for Liveness {
    fn default() -> Self {
        Self { since: Instant::now(), tasks: Vec::new() }
    }
}

impl Liveness {
    /// Registers a task; its first iteration counts as just done.
    pub fn task(&mut self, name: &'static str, limit: Duration) -> TaskWatchdog {
        let task = Arc::new(Task { name, limit, since: self.since, fed_ms: AtomicU64::new(0) });
        let watchdog = TaskWatchdog(task.clone());
        watchdog.feed();
        self.tasks.push(task);
        watchdog
    }

    /// Adds the tasks of `other`.
    pub fn join(&mut self, other: &Self) {
        self.tasks.extend(other.tasks.iter().cloned());
    }

    /// The tasks' names, in the order of registration.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tasks.iter().map(|task| task.name)
    }

    /// The task that exceeds its limit most, if any does.
    pub fn late(&self) -> Option<Late> {
        self.tasks
            .iter()
            .map(|task| Late { name: task.name, idle: task.idle(), limit: task.limit })
            .filter(|late| late.idle > late.limit)
            .max_by_key(|late| late.idle - late.limit)
    }
}

impl Task {
    fn idle(&self) -> Duration {
        let fed = Duration::from_millis(self.fed_ms.load(Ordering::Relaxed));
        self.since.elapsed().saturating_sub(fed)
    }
}

impl TaskWatchdog {
    /// Call at every iteration of the task's loop.
    pub fn feed(&self) {
        let elapsed_ms = self.0.since.elapsed().as_millis();
        self.0.fed_ms.store(u64::try_from(elapsed_ms).unwrap_or(u64::MAX), Ordering::Relaxed);
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
        assert_eq!(all.late(), Some(Late { name: "quick", idle: 2 * SECOND, limit: SECOND }));
        quick.feed();
        assert_eq!(all.late(), None);
        advance(5 * SECOND).await;
        assert_eq!(all.late().map(|late| late.name), Some("quick"), "six seconds too many against three");
        quick.feed();
        assert_eq!(all.late().map(|late| late.name), Some("slow"), "one that runs does not cover for others");
        slow.feed();
        assert_eq!(all.late(), None, "a task that runs again is alive");
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
        assert_eq!(second.late().map(|late| (late.name, late.idle)), Some(("one", 10 * SECOND)));
        one.feed();
        assert_eq!(second.late(), None);
    }
}
