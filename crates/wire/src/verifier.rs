//! Strict verification of Ed25519 signatures, with a table of the sender's key where its owner has room for one.
//!
//! A signature `(R, s)` of a statement `M` by the key `A` holds where `R = s·B − k·A`, with `k = SHA-512(R ‖ A ‖ M)` (RFC 8032,
//! section 5.1.7). Both ways of verifying accept and refuse the same, which is what `VerifyingKey::verify_strict` defines:
//!
//! - `s` is below the order of the base point `B`;
//! - neither `A` nor `R` is of small order. A key of small order makes no [`Verifier`];
//! - the encoding of `s·B − k·A` has the bytes of `R`. That encoding is canonical, and of one point alone: where the bytes
//!   are equal, `R` is a point, and whether it is of small order is asked of the point that was computed.
//!
//! Keys, signatures and statements are public: the time that this takes may depend on them.

use ed25519_dalek::{Signature, VerifyingKey};

use crate::PublicKey;
#[cfg(feature = "tables")]
pub(crate) use tables::Base;

/// The public key of a sender.
#[derive(Clone)]
pub(crate) struct Verifier {
    key: VerifyingKey,
    #[cfg(feature = "tables")]
    tables: Option<tables::Tables>,
}

/// Tables follow from the key.
impl PartialEq for Verifier {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Verifier {
    /// `None` of what is no point of the curve, and of a weak one, which has a signature for almost any statement.
    pub(crate) fn new(key: &PublicKey) -> Option<Self> {
        let key = VerifyingKey::from_bytes(key).ok().filter(|key| !key.is_weak())?;
        Some(Self {
            key,
            #[cfg(feature = "tables")]
            tables: None,
        })
    }

    #[cfg(feature = "tables")]
    pub(crate) fn precompute(&mut self, base: &Base) {
        self.tables = Some(tables::Tables::new(base, &self.key));
    }

    pub(crate) fn public_key(&self) -> PublicKey {
        self.key.to_bytes()
    }

    /// Strictly: one statement has one signature of one key, whatever another implementation accepts.
    pub(crate) fn verify(&self, statement: &[u8], signature: &Signature) -> bool {
        #[cfg(feature = "tables")]
        if let Some(tables) = &self.tables {
            return tables.verify(self.key.as_bytes(), statement, signature);
        }
        self.key.verify_strict(statement, signature).is_ok()
    }
}

/// Sums of precomputed points in the place of doublings: 30 doublings are left of 250.
///
/// A scalar has 43 digits `d` to the base 64, from −32 to 32. The digit at `6·row + column` counts `64^column` times the row's point
/// `64^(6·row)·P`, of which the table has the multiples 1 to 32. So the columns are summed from the highest, times 64 each (Horner):
/// all rows of both tables share five steps of six doublings.
#[cfg(feature = "tables")]
mod tables {
    extern crate alloc;

    use alloc::sync::Arc;

    use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
    use curve25519_dalek::edwards::EdwardsPoint;
    use curve25519_dalek::scalar::Scalar;
    use curve25519_dalek::traits::Identity as _;
    use ed25519_dalek::{Signature, VerifyingKey};
    use sha2::{Digest as _, Sha512};

    use crate::PublicKey;

    /// Bits of a digit.
    const WIDTH: usize = 6;
    /// Scalars are below 2^253.
    const DIGITS: usize = 253_usize.div_ceil(WIDTH);
    const COLUMNS: usize = 6;
    const ROWS: usize = DIGITS.div_ceil(COLUMNS);
    /// The largest digit.
    const MULTIPLES: usize = 1 << (WIDTH - 1);

    /// Multiples of a point: 41 kB, shared by all copies of a roster.
    #[derive(Clone)]
    struct Table(Arc<[[EdwardsPoint; MULTIPLES]]>);

    impl Table {
        fn new(point: EdwardsPoint) -> Self {
            let mut first = point;
            let rows = (0..ROWS).map(|_| {
                let mut multiples = [first; MULTIPLES];
                for i in 1..MULTIPLES {
                    multiples[i] = multiples[i - 1] + first;
                }
                first = (0..COLUMNS).fold(first, |point, _| times_64(&point));
                multiples
            });
            Self(rows.collect())
        }

        /// Adds the digits of one column.
        fn add_column(&self, sum: &mut EdwardsPoint, digits: &[i8; DIGITS], column: usize) {
            for (row, &digit) in self.0.iter().zip(digits.iter().skip(column).step_by(COLUMNS)) {
                let multiple = usize::from(digit.unsigned_abs()).checked_sub(1).and_then(|i| row.get(i));
                let Some(multiple) = multiple else { continue };
                if digit > 0 { *sum += multiple } else { *sum -= multiple }
            }
        }
    }

    fn times_64(point: &EdwardsPoint) -> EdwardsPoint {
        // The cofactor is 8.
        point.mul_by_cofactor().mul_by_cofactor()
    }

    /// The digits of a canonical scalar, from the lowest.
    fn digits(scalar: &Scalar) -> [i8; DIGITS] {
        let bytes = scalar.as_bytes();
        let mut carry = 0;
        core::array::from_fn(|i| {
            let (byte, shift) = (i * WIDTH / 8, i * WIDTH % 8);
            let pair = [bytes[byte], bytes.get(byte + 1).copied().unwrap_or_default()];
            let digit = (u16::from_le_bytes(pair) >> shift & ((1 << WIDTH) - 1)) as i8 + carry;
            carry = i8::from(digit > MULTIPLES as i8);
            digit - (carry << WIDTH)
        })
    }

    /// The table of the base point.
    #[derive(Clone)]
    pub(crate) struct Base(Table);

    impl Base {
        pub(crate) fn new() -> Self {
            Self(Table::new(ED25519_BASEPOINT_POINT))
        }
    }

    /// What the signatures of one key are verified with.
    #[derive(Clone)]
    pub(super) struct Tables {
        base: Base,
        /// That of the key's negative.
        minus_key: Table,
    }

    impl Tables {
        pub(super) fn new(base: &Base, key: &VerifyingKey) -> Self {
            Self { base: base.clone(), minus_key: Table::new(-key.to_edwards()) }
        }

        /// Whether the signature of `key`, whose tables these are, is one of the statement.
        pub(super) fn verify(&self, key: &PublicKey, statement: &[u8], signature: &Signature) -> bool {
            let Some(s) = Scalar::from_canonical_bytes(*signature.s_bytes()).into_option() else {
                return false;
            };
            let r = signature.r_bytes();
            let hash = Sha512::new().chain_update(r).chain_update(key).chain_update(statement).finalize();
            let k = Scalar::from_bytes_mod_order_wide(&hash.into());
            let expected = self.combine(&s, &k);
            expected.compress().as_bytes() == r && !expected.is_small_order()
        }

        /// The base point `s` times minus the key `k` times, of canonical scalars.
        pub(super) fn combine(&self, s: &Scalar, k: &Scalar) -> EdwardsPoint {
            let [s, k] = [digits(s), digits(k)];
            let mut sum = EdwardsPoint::identity();
            for column in (0..COLUMNS).rev() {
                if column + 1 < COLUMNS {
                    sum = times_64(&sum);
                }
                self.base.0.add_column(&mut sum, &s, column);
                self.minus_key.add_column(&mut sum, &k, column);
            }
            sum
        }
    }
}

#[cfg(test)]
mod tests;
