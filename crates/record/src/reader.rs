//! Reads a log up to its last good chunk.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use mcap::records::Record;
use mcap::sans_io::{LinearReadEvent, LinearReader, LinearReaderOptions};
use wingbeat_geo::Instant;

use crate::event::{Event, Time};
use crate::file::{About, JOURNAL_TOPIC, METADATA};
use crate::recorder::Block;
use crate::schema;

/// No record of ours is longer, bytes: a length in a corrupt file takes no more memory.
const RECORD_LEN_MAX: usize = 64 << 20;

/// Why a file is no log.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Nothing of a log is in it.
    #[error("found {found}, expected a flight log of Wingbeat (MCAP with the channel {JOURNAL_TOPIC})")]
    NoLog {
        /// What is there.
        found: String,
    },
}

/// What a file has.
#[derive(Debug, Default)]
pub struct Log {
    /// What it states of itself.
    pub about: About,
    /// The journal.
    pub blocks: Vec<Block>,
    /// Why it ends before its end, where it was cut or is corrupt.
    pub flaw: Option<String>,
}

/// One record of the journal.
#[derive(Debug)]
pub struct Entry<'a> {
    /// Agent time.
    pub at: Instant,
    /// The record.
    pub event: Event<'a>,
}

impl Log {
    /// Reads a file, as far as it goes.
    ///
    /// # Errors
    /// It cannot be read, or is no log at all.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let mut blocks = Vec::new();
        let log = Self::read_with(path, |block| {
            blocks.push(block);
            true
        })?;
        Ok(Self { blocks, ..log })
    }

    /// Reads a file, as far as it goes or `each` wants another block; the log has no blocks. A block with a record that cannot
    /// be read is handed over up to that record, and is the last.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn read_with(path: &Path, each: impl FnMut(Block) -> bool) -> Result<Self, ReadError> {
        Self::read_part(path, each).map(|(log, _)| log)
    }

    /// The same, and whether it only ends early: what is there is good.
    fn read_part(path: &Path, mut each: impl FnMut(Block) -> bool) -> Result<(Self, bool), ReadError> {
        let mut file = File::open(path)?;
        let mut log = Self::default();
        let mut is_cut = false;
        let options = LinearReaderOptions::default()
            .with_skip_end_magic(true)
            .with_prevalidate_chunk_crcs(true)
            .with_record_length_limit(RECORD_LEN_MAX);
        let mut reader = LinearReader::new_with_options(options);
        let (mut journal, mut is_ended, mut seen) = (None, false, 0_u64);
        while let Some(event) = reader.next_event() {
            let (data, opcode) = match event {
                Ok(LinearReadEvent::ReadRequest(need)) => {
                    let read = file.read(reader.insert(need))?;
                    reader.notify_read(read);
                    seen += read as u64;
                    if read == 0 && is_ended {
                        break;
                    }
                    continue;
                }
                Ok(LinearReadEvent::Record { data, opcode }) => (data, opcode),
                Err(error) => {
                    is_cut = matches!(error, mcap::McapError::UnexpectedEof);
                    log.flaw = Some(error.to_string());
                    break;
                }
            };
            match mcap::parse_record(opcode, data) {
                Ok(Record::Channel(channel)) if channel.topic == JOURNAL_TOPIC => journal = Some(channel.id),
                Ok(Record::Message { header, data }) if Some(header.channel_id) == journal => {
                    match schema::read_journal_message(&data) {
                        Some((from_us, records)) => {
                            let (good_len, problem) = good(records);
                            let block = Block { from_us, records: records[..good_len].to_vec(), count: 0 };
                            if !each(block) {
                                return Ok((log, false));
                            }
                            if let Some(error) = problem {
                                // The checksums hold: it is of another version.
                                log.flaw = Some(format!("a record of the journal cannot be read ({error})"));
                                break;
                            }
                        }
                        None => {
                            log.flaw = Some("a block of the journal is malformed".into());
                            break;
                        }
                    }
                }
                Ok(Record::Metadata(metadata)) if metadata.name == METADATA => log.about = metadata.metadata,
                Ok(Record::DataEnd(_) | Record::Footer(_)) => is_ended = true,
                Ok(_) => {}
                Err(error) => {
                    log.flaw = Some(error.to_string());
                    break;
                }
            }
        }
        if !is_ended && log.flaw.is_none() {
            is_cut = true;
            log.flaw = Some("the file is not ended".into());
        }
        // A file that was cut in its first chunk is a log without records.
        if journal.is_none() && log.about.is_empty() {
            let found = match log.flaw {
                Some(_) if seen == 0 => "an empty file".to_owned(),
                Some(flaw) => flaw,
                None => format!("{seen} bytes without that channel"),
            };
            return Err(ReadError::NoLog { found });
        }
        Ok((log, is_cut))
    }

    /// Reads a file and the parts that follow it, up to the first after which records are missing. What the disk did not take
    /// at the end of a part, the next one states: it is read on.
    ///
    /// # Errors
    /// As [`Log::read`], of the first.
    pub fn read_flight(path: &Path) -> Result<Self, ReadError> {
        let read = |path: &Path| {
            let mut blocks = Vec::new();
            let (log, is_cut) = Self::read_part(path, |block| {
                blocks.push(block);
                true
            })?;
            Ok::<_, ReadError>((Self { blocks, ..log }, is_cut))
        };
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (mut log, mut is_cut) = read(path)?;
        let mut last = path.to_path_buf();
        while let Some(next) = crate::store::next_part(&last) {
            let found = read(&next);
            let flaw = match (log.flaw.take(), found) {
                (None, Ok((more, more_is_cut))) => {
                    log.blocks.extend(more.blocks);
                    (log.flaw, is_cut) = (more.flaw, more_is_cut);
                    last = next;
                    continue;
                }
                (Some(_), Ok((more, more_is_cut))) if is_cut && more.begins_with_a_loss() => {
                    log.blocks.extend(more.blocks);
                    (log.flaw, is_cut) = (more.flaw, more_is_cut);
                    last = next;
                    continue;
                }
                (None, Err(error)) => format!("{}: {error}", name(&next)),
                (Some(flaw), _) => format!("{}: {flaw}: the parts after it are left out", name(&last)),
            };
            log.flaw = Some(flaw);
            break;
        }
        Ok(log)
    }

    /// Whether its first record states that records before it were lost.
    fn begins_with_a_loss(&self) -> bool {
        matches!(self.entries().next(), Some(Ok(Entry { event: Event::Lost(_), .. })))
    }

    /// The records, in order. After one that cannot be read there is none.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry<'_>, postcard::Error>> {
        entries(&self.blocks)
    }
}

/// How many bytes of records can be read, and why no more: an input counts where all that was answered to it can be.
fn good(records: &[u8]) -> (usize, Option<postcard::Error>) {
    let (mut rest, mut good_len) = (records, 0);
    while !rest.is_empty() {
        let at = records.len() - rest.len();
        match Event::read(rest) {
            Ok((_, event, after)) => {
                if !event.is_output() {
                    good_len = at;
                }
                rest = after;
            }
            Err(error) => return (good_len, Some(error)),
        }
    }
    (records.len(), None)
}

/// The records of blocks, in order. After one that cannot be read there is none.
pub(crate) fn entries(blocks: &[Block]) -> impl Iterator<Item = Result<Entry<'_>, postcard::Error>> {
    Entries { blocks: blocks.iter(), time: Time::default(), rest: &[] }
}

struct Entries<'a> {
    blocks: std::slice::Iter<'a, Block>,
    time: Time,
    rest: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, postcard::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.rest.is_empty() {
            let block = self.blocks.next()?;
            self.time = Time::default();
            let _ = self.time.advance(block.from_us);
            self.rest = &block.records;
        }
        match Event::read(self.rest) {
            Ok((since_us, event, rest)) => {
                self.rest = rest;
                Some(Ok(Entry { at: self.time.advance(since_us), event }))
            }
            Err(error) => {
                (self.rest, self.blocks) = (&[], [].iter());
                Some(Err(error))
            }
        }
    }
}
