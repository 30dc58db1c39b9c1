//! MAVLink's checksum, CRC-16/MCRF4XX (<https://mavlink.io/en/guide/serialization.html#checksum>), eight
//! bytes at a time.
//!
//! A table of what each byte does to the checksum after so many more bytes lets eight look-ups run in
//! parallel instead of one after the other ("slicing by eight").

/// Reflected polynomial 0x1021.
const POLYNOMIAL: u16 = 0x8408;
/// What an empty frame's checksum is.
const INITIAL: u16 = 0xffff;

/// `TABLES[k][b]`: what byte `b` leaves after `k` zero bytes more.
static TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u16;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before: u16 = tables[k - 1][byte];
            tables[k][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

#[inline]
fn step(crc: u16, byte: u8) -> u16 {
    (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)]
}

/// The checksum of `bytes` and then `extra`.
#[inline]
pub(super) fn checksum(bytes: &[u8], extra: u8) -> u16 {
    let mut crc = INITIAL;
    let (eights, rest) = bytes.as_chunks::<8>();
    for &[a, b, c, d, e, f, g, h] in eights {
        let [low, high] = crc.to_le_bytes();
        crc = TABLES[7][usize::from(a ^ low)]
            ^ TABLES[6][usize::from(b ^ high)]
            ^ TABLES[5][usize::from(c)]
            ^ TABLES[4][usize::from(d)]
            ^ TABLES[3][usize::from(e)]
            ^ TABLES[2][usize::from(f)]
            ^ TABLES[1][usize::from(g)]
            ^ TABLES[0][usize::from(h)];
    }
    for &byte in rest {
        crc = step(crc, byte);
    }
    step(crc, extra)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_catalogue_s_check_value() {
        // CRC RevEng's catalogue: CRC-16/MCRF4XX of "123456789" is 0x6f91.
        assert_eq!(checksum(b"12345678", b'9'), 0x6f91);
    }

    proptest! {
        #[test]
        fn agrees_with_the_mavlink_crate(bytes in prop::collection::vec(any::<u8>(), 0..300), extra: u8) {
            prop_assert_eq!(checksum(&bytes, extra), mavlink::calculate_crc(&bytes, extra));
        }
    }
}
