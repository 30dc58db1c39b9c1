//! Work that takes a while: a few pieces at the same time, shared fairly by users, each with a
//! budget, and ended when its client or the service goes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pieces of work at the same time; a mission file takes some 60 ms of one core.
const READERS: usize = 2;
/// Of one user: the others find a reader.
const OF_USER: usize = 1;
/// A piece of work reads for no longer.
const TIME_MAX: Duration = Duration::from_secs(20);
/// A piece of work reads no more decompressed bytes: a chunk of a log may be 255 times as long as
/// its file.
const BYTES_MAX: u64 = 2 << 30;

tokio::task_local! {
    /// The user, or the address, whose request is being answered.
    pub(crate) static ASKER: String;
}

/// The readers of a service.
#[derive(Debug)]
pub(crate) struct Readers {
    all: Arc<Semaphore>,
    by_user: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    is_ending: Arc<AtomicBool>,
}

impl Default for Readers {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(READERS)), by_user: Mutex::default(), is_ending: Arc::default() }
    }
}

/// A reader, until it is dropped.
pub(crate) struct Reader {
    _of_user: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Readers {
    /// Waits for a reader: first of the asking user's share. The semaphores are never closed.
    pub(crate) async fn take(&self) -> Option<Reader> {
        let asker = ASKER.try_with(Clone::clone).unwrap_or_default();
        let own = {
            let mut by_user = self.by_user.lock().unwrap_or_else(PoisonError::into_inner);
            // Those whom no request waits for or uses are not kept.
            by_user.retain(|_, own| Arc::strong_count(own) > 1 || own.available_permits() < OF_USER);
            by_user.entry(asker).or_insert_with(|| Arc::new(Semaphore::new(OF_USER))).clone()
        };
        let of_user = own.acquire_owned().await.ok()?;
        let of_all = self.all.clone().acquire_owned().await.ok()?;
        Some(Reader { _of_user: of_user, _of_all: of_all })
    }

    /// The budget of a piece of work that begins now, and its end when the client goes.
    pub(crate) fn budget(&self) -> (Budget, Ended) {
        let ended = Ended(Arc::default());
        let budget = Budget {
            is_ending: self.is_ending.clone(),
            has_left: ended.0.clone(),
            until: Instant::now() + TIME_MAX,
            left: Cell::new(BYTES_MAX),
            is_over: Cell::new(false),
            bytes_max: BYTES_MAX,
        };
        (budget, ended)
    }

    /// The service ends: nothing is read on.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }
}

/// Ends a piece of work when it is dropped: its client has gone.
pub(crate) struct Ended(Arc<AtomicBool>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The bounds of a piece of work.
#[derive(Debug)]
pub(crate) struct Budget {
    is_ending: Arc<AtomicBool>,
    has_left: Arc<AtomicBool>,
    until: Instant,
    left: Cell<u64>,
    bytes_max: u64,
    is_over: Cell<bool>,
}

impl Budget {
    /// Spends so many decompressed bytes.
    ///
    /// # Errors
    /// Why reading ends here.
    pub(crate) fn spend(&self, bytes: u64) -> Result<(), String> {
        self.try_spend(bytes).inspect_err(|_| self.is_over.set(true))
    }

    /// Returns whether reading ended because of the budget.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    fn try_spend(&self, bytes: u64) -> Result<(), String> {
        if self.is_ending.load(Ordering::Relaxed) || self.has_left.load(Ordering::Relaxed) {
            return Err("reading was broken off".to_owned());
        }
        let Some(left) = self.left.get().checked_sub(bytes) else {
            return Err(format!("only its first {} MB, decompressed, are read", self.bytes_max >> 20));
        };
        // The time is asked for each MB.
        let is_due = self.left.get() >> 20 != left >> 20;
        self.left.set(left);
        if is_due && Instant::now() > self.until {
            return Err(format!("it is read for {} s only", TIME_MAX.as_secs()));
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn of(bytes_max: u64) -> Self {
        Self {
            is_ending: Arc::default(),
            has_left: Arc::default(),
            until: Instant::now() + TIME_MAX,
            left: Cell::new(bytes_max),
            is_over: Cell::new(false),
            bytes_max,
        }
    }

    #[cfg(test)]
    pub(crate) fn until(self, until: Instant) -> Self {
        Self { until, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_readers_are_shared_by_users() {
        let readers = Arc::new(Readers::default());
        let of = |user: &str| {
            let readers = readers.clone();
            ASKER.scope(user.to_owned(), async move { readers.take().await.unwrap() })
        };
        let first = of("eve").await;
        let more: Vec<_> = (0..100).map(|_| tokio::spawn(of("eve"))).collect();
        tokio::task::yield_now().await;
        let anna = tokio::time::timeout(Duration::from_secs(5), of("anna")).await;
        assert!(anna.is_ok(), "anna has a reader while eve's requests wait");
        more.iter().for_each(|waiting| waiting.abort());
        drop((first, anna, more));
        for number in 0..10_000 {
            drop(of(&format!("user{number}")).await);
        }
        assert!(readers.by_user.lock().unwrap().len() < 200);
    }

    #[test]
    fn a_budget_ends_with_its_bytes_its_time_its_client_and_its_service() {
        let readers = Readers::default();
        let why = |budget: &Budget, bytes| budget.spend(bytes).unwrap_err();
        assert_eq!(why(&Budget::of(3 << 20), 4 << 20), "only its first 3 MB, decompressed, are read");
        let late = Budget::of(3 << 20).until(Instant::now() - Duration::from_secs(1));
        assert_eq!(why(&late, 1 << 20), "it is read for 20 s only");
        let (budget, client) = readers.budget();
        assert_eq!(budget.spend(1), Ok(()));
        drop(client);
        assert_eq!(why(&budget, 1), "reading was broken off");
        let (budget, _client) = readers.budget();
        readers.end();
        assert_eq!(why(&budget, 1), "reading was broken off");
    }
}
