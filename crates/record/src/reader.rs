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

    /// Reads a file, as far as it goes or `each` wants another block; the log has no blocks.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn read_with(path: &Path, mut each: impl FnMut(Block) -> bool) -> Result<Self, ReadError> {
        let mut file = File::open(path)?;
        let mut log = Self::default();
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
                    log.flaw = Some(error.to_string());
                    break;
                }
            };
            match mcap::parse_record(opcode, data) {
                Ok(Record::Channel(channel)) if channel.topic == JOURNAL_TOPIC => journal = Some(channel.id),
                Ok(Record::Message { header, data }) if Some(header.channel_id) == journal => {
                    match schema::read_journal_message(&data) {
                        Some((from_us, records)) => {
                            if !each(Block { from_us, records: records.to_vec(), count: 0 }) {
                                return Ok(log);
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
        Ok(log)
    }

    /// Reads a file and the parts that follow it, up to the first that has a flaw.
    ///
    /// # Errors
    /// As [`Log::read`], of the first.
    pub fn read_flight(path: &Path) -> Result<Self, ReadError> {
        let mut log = Self::read(path)?;
        let mut last = path.to_path_buf();
        while let Some(next) = crate::store::next_part(&last) {
            match Self::read(&next) {
                // What a file lost at its end, the next one states.
                Ok(more) => {
                    log.blocks.extend(more.blocks);
                    log.flaw = more.flaw;
                }
                Err(error) => log.flaw = Some(format!("{}: {error}", next.display())),
            }
            last = next;
        }
        Ok(log)
    }

    /// The records, in order. After one that cannot be read there is none.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry<'_>, postcard::Error>> {
        entries(&self.blocks)
    }
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
