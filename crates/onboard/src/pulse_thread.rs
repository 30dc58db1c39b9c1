//! The thread that sends pulses to the guardian: it does nothing else, allocates nothing, waits for no lock and runs at a
//! raised priority, so that a loaded computer does not silence a daemon that lives.
//!
//! It proves no more than that the process lives. The driver's own sign of life is the time of its last turn, whose age
//! each pulse carries.

use std::{
    io::{self, Write as _},
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering, fence},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Instant,
};

use wingbeat_agent::guardian::{Beat, PULSE_LEN, PULSE_PERIOD};

use crate::scheduling;

/// Words that hold the bytes of a pulse.
const WORDS: usize = PULSE_LEN.div_ceil(8);
/// A content that is being written is read again so often; then the last one is sent again.
const TRIES: u32 = 3;

/// The newest content and the driver's last turn, without a lock: a driver that is interrupted while it writes does not
/// stop the thread.
#[derive(Debug)]
struct Shared {
    /// Odd while the content is written.
    version: AtomicU32,
    words: [AtomicU64; WORDS],
    began: Instant,
    turned_ms: AtomicU64,
}

impl Shared {
    fn write(&self, beat: &Beat) {
        let bytes = beat.encode();
        self.version.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::Release);
        for (word, part) in self.words.iter().zip(bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..part.len()].copy_from_slice(part);
            word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
        }
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the content; none before the first, and where it is being written.
    fn read(&self) -> Option<Beat> {
        for _ in 0..TRIES {
            let before = self.version.load(Ordering::Acquire);
            let mut bytes = [0; WORDS * 8];
            for (part, word) in bytes.chunks_mut(8).zip(&self.words) {
                part.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && before != 0 && self.version.load(Ordering::Relaxed) == before {
                return Beat::decode(bytes.first_chunk()?).ok();
            }
        }
        None
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    fn driver_age_ms(&self) -> u16 {
        let age_ms = self.now_ms().saturating_sub(self.turned_ms.load(Ordering::Acquire));
        u16::try_from(age_ms).unwrap_or(u16::MAX)
    }
}

/// The driver's end. The thread ends when it is dropped.
#[derive(Debug)]
pub(crate) struct PulseThread {
    shared: Arc<Shared>,
    streams: mpsc::Sender<Option<UnixStream>>,
}

impl PulseThread {
    /// Starts the thread, without a stream.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared {
            version: AtomicU32::new(0),
            words: Default::default(),
            began: Instant::now(),
            turned_ms: AtomicU64::new(0),
        });
        let (streams, received) = mpsc::channel();
        let own = shared.clone();
        thread::Builder::new().name("pulse".into()).spawn(move || send_all(&own, &received))?;
        Ok(Self { shared, streams })
    }

    /// Notes that the driver's loop turns.
    pub(crate) fn turned(&self) {
        self.shared.turned_ms.store(self.shared.now_ms(), Ordering::Release);
    }

    /// Gives the thread another content.
    pub(crate) fn content(&self, beat: &Beat) {
        self.shared.write(beat);
    }

    /// Gives the thread another stream, or takes it away.
    pub(crate) fn stream(&self, stream: Option<UnixStream>) {
        // It ends with this end only.
        let _ = self.streams.send(stream);
    }
}

fn send_all(shared: &Shared, streams: &mpsc::Receiver<Option<UnixStream>>) {
    if let Err(error) = scheduling::raise_thread() {
        tracing::info!("the pulses to the guardian are sent at the usual priority: {error}");
    }
    let (mut stream, mut last) = (None::<UnixStream>, None);
    loop {
        match streams.recv_timeout(PULSE_PERIOD) {
            Ok(other) => stream = other,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        last = shared.read().or(last);
        let (Some(open), Some(beat)) = (&mut stream, last) else { continue };
        let beat = Beat { driver_age_ms: shared.driver_age_ms(), ..beat };
        match open.write(&beat.encode()) {
            Ok(PULSE_LEN) => {}
            // It does not read, and is missed for not answering.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The driver sees the end of the stream and connects again.
            Ok(_) | Err(_) => {
                let _ = open.shutdown(Shutdown::Both);
                stream = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, time::Duration};

    use wingbeat_agent::guardian::{Activity, Modes, Pulse};

    use super::*;

    fn beat(sequence: u32) -> Beat {
        let pulse = Pulse {
            activity: Activity::Commanding,
            system_id: sequence as u8,
            ours: Modes(sequence),
            switch_channel: 5,
            endpoint: sequence,
            route: u64::from(sequence),
            takes_up: 0,
        };
        Beat { pulse, sequence, driver_age_ms: 0 }
    }

    #[test]
    fn a_content_is_read_whole_while_it_changes() {
        let shared = Arc::new(Shared {
            version: AtomicU32::new(0),
            words: Default::default(),
            began: Instant::now(),
            turned_ms: AtomicU64::new(0),
        });
        assert_eq!(shared.read(), None);
        let writer = shared.clone();
        let writing = thread::spawn(move || (1..=200_000).for_each(|n| writer.write(&beat(n))));
        let mut seen = 0;
        while !writing.is_finished() {
            if let Some(read) = shared.read() {
                assert_eq!(read, beat(read.sequence));
                assert!(read.sequence >= seen);
                seen = read.sequence;
            }
        }
        writing.join().unwrap();
        assert_eq!(shared.read(), Some(beat(200_000)));
    }

    #[test]
    fn pulses_go_on_with_the_age_of_a_driver_that_hangs() {
        let (ours, mut guardians) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let thread = PulseThread::start().unwrap();
        thread.turned();
        thread.content(&beat(7));
        thread.stream(Some(ours));
        guardians.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut ages = Vec::new();
        for _ in 0..5 {
            let mut bytes = [0; PULSE_LEN];
            guardians.read_exact(&mut bytes).unwrap();
            let read = Beat::decode(&bytes).unwrap();
            assert_eq!((read.pulse, read.sequence), (beat(7).pulse, 7));
            ages.push(read.driver_age_ms);
        }
        // Four periods without a turn.
        assert!(ages.is_sorted() && ages[4] >= 600, "{ages:?}");
        drop(thread);
        let mut rest = Vec::new();
        guardians.read_to_end(&mut rest).expect("its thread ends");
    }
}
