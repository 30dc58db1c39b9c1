//! The thread that writes blocks, and the bounded queue to it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::recorder::Block;

/// Blocks that wait for the disk: half a minute of a card that is busy.
const QUEUE_LEN: usize = 40;

/// What takes blocks and keeps them.
pub trait Sink: Send + 'static {
    /// Writes a block.
    ///
    /// # Errors
    /// One line: what, found and expected.
    fn write(&mut self, block: &Block) -> Result<(), String>;

    /// Ends what is being written.
    ///
    /// # Errors
    /// As [`Sink::write`].
    fn end(&mut self) -> Result<(), String>;
}

/// What a writer reports of itself.
#[derive(Debug, Default)]
pub struct Counts {
    written: AtomicU64,
    lost: AtomicU64,
    problem: Mutex<Option<String>>,
}

impl Counts {
    /// Records that the sink took.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Records that were lost, by a full queue or a sink that did not take them.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Why the sink takes nothing now.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_problem(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }
}

/// Whether the recorder's host waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A bench, whose clock stands still meanwhile.
    Waits,
    /// An aircraft: what finds no room is lost, and counted.
    Loses,
}

/// What came of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handover {
    /// It waits for the disk.
    Taken,
    /// So many records were lost.
    Lost(u64),
}

/// The recorder's end of the queue.
#[derive(Debug)]
pub struct Blocks {
    queue: SyncSender<Block>,
    pace: Pace,
    counts: Arc<Counts>,
}

impl Blocks {
    /// Whether the recorder's host waits for the disk.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Hands a block on.
    pub fn hand_over(&self, block: Block) -> Handover {
        let count = block.count;
        let is_taken = match self.pace {
            Pace::Waits => self.queue.send(block).is_ok(),
            Pace::Loses => match self.queue.try_send(block) {
                Ok(()) => true,
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
            },
        };
        if is_taken {
            return Handover::Taken;
        }
        self.counts.lost.fetch_add(count, Ordering::Relaxed);
        Handover::Lost(count)
    }
}

/// A thread that writes. It ends when its [`Blocks`] are dropped and all is written.
#[derive(Debug)]
pub struct Writer {
    thread: JoinHandle<()>,
    counts: Arc<Counts>,
}

impl Writer {
    /// Starts a thread that gives blocks to a sink.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn spawn(sink: impl Sink, pace: Pace) -> io::Result<(Self, Blocks)> {
        let (queue, blocks) = sync_channel(QUEUE_LEN);
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        let thread =
            thread::Builder::new().name("record".into()).spawn(move || write_all(sink, &blocks, &shared))?;
        Ok((Self { thread, counts: Arc::clone(&counts) }, Blocks { queue, pace, counts }))
    }

    /// What it reports of itself.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Whether all is written, after its [`Blocks`] were dropped.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until all is written, after its [`Blocks`] were dropped.
    ///
    /// # Errors
    /// What the sink did not take, one line.
    pub fn join(self) -> Result<(), String> {
        self.thread.join().map_err(|_| "the writer's thread panicked".to_owned())?;
        match self.counts.problem() {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }
}

fn write_all(mut sink: impl Sink, blocks: &Receiver<Block>, counts: &Counts) {
    while let Ok(block) = blocks.recv() {
        let result = sink.write(&block);
        match &result {
            Ok(()) => counts.written.fetch_add(block.count, Ordering::Relaxed),
            Err(_) => counts.lost.fetch_add(block.count, Ordering::Relaxed),
        };
        counts.set_problem(result.err());
    }
    if let Err(problem) = sink.end() {
        counts.set_problem(Some(problem));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// Takes a block when it is let.
    struct Slow(Receiver<()>, Sender<Block>);

    impl Sink for Slow {
        fn write(&mut self, block: &Block) -> Result<(), String> {
            self.0.recv().map_err(|error| error.to_string())?;
            self.1.send(block.clone()).map_err(|error| error.to_string())
        }
        fn end(&mut self) -> Result<(), String> {
            Ok(())
        }
    }

    #[test]
    fn a_full_queue_loses_and_counts_and_blocks_nothing() {
        let (go, permission) = channel();
        let (taken, received) = channel();
        let (writer, blocks) = Writer::spawn(Slow(permission, taken), Pace::Loses).unwrap();
        let block = |from_us| Block { from_us, records: vec![0], count: 3 };
        let offered = QUEUE_LEN as u64 * 2;
        let lost = (0..offered).filter(|i| blocks.hand_over(block(*i)) == Handover::Lost(3)).count() as u64;
        assert!(lost >= QUEUE_LEN as u64 - 1, "{lost}");
        assert_eq!(writer.counts().lost(), 3 * lost);
        for _ in 0..offered - lost {
            go.send(()).unwrap();
        }
        drop(blocks);
        let counts = writer.counts();
        writer.join().unwrap();
        assert_eq!(counts.written(), 3 * (offered - lost));
        assert!(received.iter().map(|block| block.from_us).is_sorted());
    }

    #[test]
    fn a_sink_that_fails_counts_as_loss_and_says_why() {
        let (go, permission) = channel::<()>();
        drop(go);
        let (writer, blocks) = Writer::spawn(Slow(permission, channel().0), Pace::Waits).unwrap();
        assert_eq!(blocks.hand_over(Block { from_us: 0, records: vec![0], count: 5 }), Handover::Taken);
        drop(blocks);
        let counts = writer.counts();
        assert!(writer.join().is_err());
        assert_eq!((counts.written(), counts.lost()), (0, 5));
    }
}
