//! One MCAP file, read from its beginning as far as it goes; never more than a chunk of it is in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use mcap::records::Record;
use mcap::sans_io::{LinearReadEvent, LinearReader, LinearReaderOptions};

use crate::readers::Budget;

/// What a file states of itself.
pub(super) type About = BTreeMap<String, String>;

/// The name of its metadata.
const METADATA: &str = "wingbeat";
/// No record of a log is longer, bytes: a length in a corrupt file takes no more memory.
const RECORD_LEN_MAX: usize = 64 << 20;
/// The opcode and the length of a record, bytes.
const RECORD_HEAD_LEN: u64 = 9;
/// So much of a file is read for what it states of itself, bytes.
const ABOUT_LEN_MAX: u64 = 1 << 20;

/// Why nothing of a file is shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("found {0}, expected a flight log of Wingbeat (docs/records.md)")]
    NoLog(String),
    #[error("not read: {0}")]
    NotRead(String),
}

impl Problem {
    /// Returns the problem of a file that states nothing of itself: where the budget ended, it may well be a log.
    fn unknown(why: String, budget: &Budget) -> Self {
        if budget.is_over() { Self::NotRead(why) } else { Self::NoLog(why) }
    }
}

/// What is handed over, in order.
pub(super) enum Item<'a> {
    About(About),
    /// A message of the channel with this topic, and its time: nanoseconds.
    Message(&'a str, u64, &'a [u8]),
}

/// Whether reading goes on.
pub(super) type Go = std::ops::ControlFlow<()>;

/// Reads at most so many bytes of a file, within the budget; the answer is why it ends before its end.
pub(super) fn read(
    path: &Path,
    length_max: u64,
    budget: &Budget,
    mut each: impl FnMut(Item<'_>) -> Go,
) -> Result<Option<String>, Problem> {
    let mut file = File::open(path)?;
    let options = LinearReaderOptions::default()
        .with_skip_end_magic(true)
        .with_prevalidate_chunk_crcs(true)
        .with_record_length_limit(RECORD_LEN_MAX);
    let mut reader = LinearReader::new_with_options(options);
    let (mut topics, mut is_log, mut is_ended, mut seen) = (BTreeMap::new(), false, false, 0_u64);
    let mut flaw = None;
    while let Some(event) = reader.next_event() {
        let (data, opcode) = match event {
            Ok(LinearReadEvent::ReadRequest(need)) => {
                if seen >= length_max {
                    flaw = Some(format!("only its first {} MB are read", length_max >> 20));
                    break;
                }
                let read = file.read(reader.insert(need))?;
                reader.notify_read(read);
                seen += read as u64;
                if let Err(why) = budget.spend(0) {
                    flaw = Some(why);
                    break;
                }
                if read == 0 && is_ended {
                    break;
                }
                continue;
            }
            Ok(LinearReadEvent::Record { data, opcode }) => (data, opcode),
            Err(error) => {
                flaw = Some(error.to_string());
                break;
            }
        };
        if let Err(why) = budget.spend(data.len() as u64 + RECORD_HEAD_LEN) {
            flaw = Some(why);
            break;
        }
        let go = match mcap::parse_record(opcode, data) {
            Ok(Record::Channel(channel)) => {
                topics.insert(channel.id, channel.topic);
                Go::Continue(())
            }
            Ok(Record::Metadata(metadata)) if metadata.name == METADATA => {
                is_log = true;
                each(Item::About(metadata.metadata))
            }
            Ok(Record::Message { header, data }) => match topics.get(&header.channel_id) {
                Some(topic) => each(Item::Message(topic, header.log_time, &data)),
                None => Go::Continue(()),
            },
            Ok(Record::DataEnd(_) | Record::Footer(_)) => {
                is_ended = true;
                Go::Continue(())
            }
            Ok(_) => Go::Continue(()),
            Err(error) => {
                flaw = Some(error.to_string());
                break;
            }
        };
        if go.is_break() {
            return Ok(None);
        }
    }
    if !is_log {
        return Err(Problem::unknown(
            flaw.unwrap_or_else(|| format!("{seen} bytes of another kind")),
            budget,
        ));
    }
    if !is_ended && flaw.is_none() {
        flaw = Some("the file is not ended".to_owned());
    }
    Ok(flaw)
}

/// What a file states of itself.
pub(super) fn about(path: &Path, budget: &Budget) -> Result<About, Problem> {
    let mut found = None;
    let flaw = read(path, ABOUT_LEN_MAX, budget, |item| match item {
        Item::About(about) => {
            found = Some(about);
            Go::Break(())
        }
        Item::Message(..) => Go::Continue(()),
    })?;
    found.ok_or_else(|| {
        Problem::unknown(flaw.unwrap_or_else(|| "a file that states nothing of itself".into()), budget)
    })
}

/// UTC at agent time zero, microseconds after 1970.
pub(super) fn zero_unix_us(about: &About) -> Option<u64> {
    about.get("utc_of_agent_time_zero_us")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// A log with one chunk of zeros, LZ4, and the length of its file.
    fn bomb(path: &Path, pieces: u32) -> u64 {
        // Without checksums, so that a reader streams the chunk.
        let options = mcap::WriteOptions::new()
            .compression(Some(mcap::Compression::Lz4))
            .chunk_size(None)
            .calculate_chunk_crcs(false);
        let mut writer = options.create(std::io::BufWriter::new(File::create(path).unwrap())).unwrap();
        let metadata = BTreeMap::from([("name".to_owned(), "one".to_owned())]);
        writer.write_metadata(&mcap::records::Metadata { name: METADATA.into(), metadata }).unwrap();
        let channel = writer.add_channel(0, "/state", "json", &BTreeMap::new()).unwrap();
        let zeros = vec![0; 16 << 20];
        for sequence in 0..pieces {
            let header =
                mcap::records::MessageHeader { channel_id: channel, sequence, log_time: 0, publish_time: 0 };
            writer.write_to_known_channel(&header, &zeros).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        path.metadata().unwrap().len()
    }

    #[test]
    fn a_log_behind_the_end_of_the_budget_is_not_read_and_not_refused_as_no_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mcap");
        bomb(&path, 1);
        let spent = Budget::of(0);
        assert!(spent.spend(1).is_err());
        let problem = about(&path, &spent).unwrap_err();
        assert!(matches!(problem, Problem::NotRead(_)), "{problem}");
        std::fs::write(&path, "12345").unwrap();
        let problem = about(&path, &Budget::of(1 << 20)).unwrap_err();
        assert!(matches!(problem, Problem::NoLog(_)), "{problem}");
    }

    #[test]
    fn a_chunk_of_gigabytes_of_zeros_is_read_within_its_budget() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bomb.mcap");
        let length = bomb(&path, 80);
        assert!(length < 16 << 20, "{length} bytes for 1.3 GB");
        let mut seen = 0;
        let budget = Budget::of(100 << 20);
        let flaw = read(&path, 1 << 30, &budget, |item| {
            seen += u64::from(matches!(item, Item::Message(..)));
            Go::Continue(())
        });
        assert_eq!(flaw.unwrap().as_deref(), Some("only its first 100 MB, decompressed, are read"));
        assert!(seen <= 7, "{seen}");
        // The first MB ends within the first message, after what the file states of itself.
        let late = Budget::of((1 << 40) + (1 << 19)).until(Instant::now() - Duration::from_secs(1));
        let flaw = read(&path, 1 << 30, &late, |_| Go::Continue(()));
        assert_eq!(flaw.unwrap().as_deref(), Some("it is read for 20 s only"));
    }
}
