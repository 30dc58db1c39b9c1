//! What is known of each message before its bytes are trusted: how its checksum is seeded and how long it
//! may be.

mod shapes {
    include!("shapes.rs");
}

/// One message of the dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Message id.
    pub(super) id: u32,
    /// What its checksum ends with (<https://mavlink.io/en/guide/serialization.html#crc_extra>).
    pub(super) extra_crc: u8,
    /// Length without extension fields: what MAVLink 1 carries.
    pub(super) base_len: u8,
    /// Length with them.
    pub(super) full_len: u8,
}

/// Ids below this index a table; the few above by bisection.
const DENSE: usize = 512;

static ROWS: [Row; shapes::ROWS.len()] = shapes::ROWS;
static INDICES: [u16; DENSE] = indices();

/// The row of each low id, and the number of rows where it is not.
const fn indices() -> [u16; DENSE] {
    let mut indices = [shapes::ROWS.len() as u16; DENSE];
    let mut i = 0;
    while i < shapes::ROWS.len() {
        if (shapes::ROWS[i].id as usize) < DENSE {
            indices[shapes::ROWS[i].id as usize] = i as u16;
        }
        i += 1;
    }
    indices
}

/// What is known of a message id.
#[inline]
pub(super) fn row(id: u32) -> Option<&'static Row> {
    match INDICES.get(id as usize) {
        Some(&index) => ROWS.get(usize::from(index)),
        None => ROWS.binary_search_by_key(&id, |row| row.id).ok().map(|i| &ROWS[i]),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::dialect::MavMessage;
    use mavlink::{MavlinkVersion, Message};

    #[test]
    fn the_table_is_that_of_the_mavlink_crate() {
        assert!(ROWS.is_sorted_by(|a, b| a.id < b.id), "bisection needs order");
        for id in 0..100_000 {
            let Some(message) = MavMessage::default_message_from_id(id) else {
                assert_eq!(row(id), None, "message {id}");
                continue;
            };
            let row = row(id).unwrap_or_else(|| panic!("message {id}: not in the table"));
            assert_eq!(row.extra_crc, MavMessage::extra_crc(id), "message {id}");
            // In version 1 the crate writes what is no extension, and cuts no zeros.
            let base_len = message.ser(MavlinkVersion::V1, &mut [0; 255]);
            assert_eq!(usize::from(row.base_len), base_len, "message {id}");
            // It refuses a buffer that is too short for every field, by a panic.
            let fits = |len: u8| {
                let mut buffer = [0; 255];
                let write = || message.ser(MavlinkVersion::V1, &mut buffer[..usize::from(len)]);
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(write)).is_ok()
            };
            assert!(fits(row.full_len) && !fits(row.full_len - 1), "message {id}: {row:?}");
        }
        assert!(ROWS.last().is_some_and(|row| row.id < 100_000), "the loop above saw every row");
        assert_eq!(row(u32::MAX), None);
    }
}
