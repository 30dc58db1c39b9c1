//! With tables and without, the same signatures hold.
//!
//! The cases are those of "Taming the Many EdDSAs" (Chalkias, Garillot, Nikolaenko; SSR 2020, table 5), where implementations of
//! Ed25519 differ: each is made here from its definition, and has the decision that strict verification has by that paper.

extern crate std;

use std::{vec, vec::Vec};

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity as _;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use proptest::prelude::*;
use sha2::{Digest as _, Sha512};

use super::tables::{Base, Tables};
use super::*;

/// The order of the base point, little-endian (RFC 8032, section 5.1).
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The decision on a signature, by strict verification, by a [`Verifier`] without tables and by one with them.
fn decisions(key: &PublicKey, statement: &[u8], r: [u8; 32], s: [u8; 32]) -> [bool; 3] {
    let signature = Signature::from_components(r, s);
    let strict =
        VerifyingKey::from_bytes(key).is_ok_and(|key| key.verify_strict(statement, &signature).is_ok());
    let Some(mut verifier) = Verifier::new(key) else { return [strict, false, false] };
    let plain = verifier.verify(statement, &signature);
    verifier.precompute(&Base::new());
    [strict, plain, verifier.verify(statement, &signature)]
}

fn challenge(r: &[u8; 32], key: &PublicKey, statement: &[u8]) -> Scalar {
    let hash = Sha512::new().chain_update(r).chain_update(key).chain_update(statement).finalize();
    Scalar::from_bytes_mod_order_wide(&hash.into())
}

/// The multiple of a point of order eight that an integer takes of it.
fn torsion(scalar: &Scalar) -> EdwardsPoint {
    EIGHT_TORSION[usize::from(scalar.as_bytes()[0] % 8)]
}

/// `s`, and once more with the order added: the same residue.
fn above_order(s: &Scalar) -> [u8; 32] {
    let mut sum = [0; 32];
    let mut carry = 0;
    for (out, (a, b)) in sum.iter_mut().zip(s.as_bytes().iter().zip(ORDER)) {
        let digit = u16::from(*a) + u16::from(b) + carry;
        *out = digit as u8;
        carry = digit >> 8;
    }
    sum
}

/// A sender's secret scalar, and a nonce: any two that are not small.
fn scalars() -> [Scalar; 2] {
    [0x9e37_79b9_7f4a_7c15_u64, 0xf39c_c060_5ced_c835]
        .map(|n| Scalar::from(n) * Scalar::from(n) * Scalar::from(n))
}

/// The first of 1000 statements by whose challenge `is_wanted`.
fn statement(r: &[u8; 32], key: &PublicKey, is_wanted: impl Fn(&Scalar) -> bool) -> Vec<u8> {
    let mut statements = (0..1000_u16).map(|n| n.to_le_bytes().to_vec());
    statements.find(|statement| is_wanted(&challenge(r, key, statement))).unwrap()
}

/// A signature with nonce point `R = nonce·B + torsion` by the key `A = secret·B + torsion`; `is_exact` asks for one whose torsion cancels, which
/// verification without the cofactor accepts, and otherwise for one whose torsion does not.
fn with_torsion(
    nonce: &Scalar,
    of_r: usize,
    of_key: usize,
    is_exact: bool,
) -> (PublicKey, Vec<u8>, [u8; 32], [u8; 32]) {
    let [secret, _] = scalars();
    let key = (EdwardsPoint::mul_base(&secret) + EIGHT_TORSION[of_key]).compress().to_bytes();
    let r = (EdwardsPoint::mul_base(nonce) + EIGHT_TORSION[of_r]).compress().to_bytes();
    let statement = statement(&r, &key, |k| {
        let left = usize::from(k.as_bytes()[0]) * of_key + of_r;
        left.is_multiple_of(8) == is_exact
    });
    let s = nonce + challenge(&r, &key, &statement) * secret;
    (key, statement, r, s.to_bytes())
}

#[test]
fn implementations_differ_and_ours_do_not() {
    let [secret, nonce] = scalars();
    let small = |i: usize| EIGHT_TORSION[i].compress().to_bytes();
    // 0, 1: the key is of small order. Any statement whose challenge is a multiple of eight has the signature.
    for (r, s) in [(small(1), Scalar::ZERO), (EdwardsPoint::mul_base(&nonce).compress().to_bytes(), nonce)] {
        for i in 0..8 {
            let statement = statement(&r, &small(i), |k| torsion(k) == EIGHT_TORSION[0]);
            assert_eq!(decisions(&small(i), &statement, r, s.to_bytes()), [false; 3], "key of order {i}");
        }
    }
    let cases = [
        ("an ordinary one", nonce, 0, 0, true, true),
        ("2: R of small order", Scalar::ZERO, 3, 1, true, false),
        ("2: R of small order, key of prime order", Scalar::ZERO, 0, 0, true, false),
        ("3: key and R of mixed order, exact", nonce, 3, 1, true, true),
        ("3: key of mixed order, R of prime order, exact", nonce, 0, 1, true, true),
        ("4: key and R of mixed order, with the cofactor only", nonce, 3, 1, false, false),
        ("5: key of mixed order, R of prime order, with the cofactor only", nonce, 0, 1, false, false),
        ("R of mixed order, with the cofactor only", nonce, 4, 0, false, false),
    ];
    for (case, nonce, of_r, of_key, is_exact, expected) in cases {
        let (key, statement, r, s) = with_torsion(&nonce, of_r, of_key, is_exact);
        assert_eq!(decisions(&key, &statement, r, s), [expected; 3], "{case}");
        // 6, 7: s above the order, and far above it.
        let twice = above_order(&Scalar::from_bytes_mod_order(s));
        assert_eq!(decisions(&key, &statement, r, twice), [false; 3], "{case}, s above the order");
        for bit in [0x20, 0x40, 0x80] {
            let mut high = s;
            high[31] |= bit;
            assert_eq!(decisions(&key, &statement, r, high), [false; 3], "{case}, bit {bit:#x} of s");
        }
    }
    assert_ne!(secret, nonce);
}

/// 8 to 11: encodings whose y is not reduced, and the negative of an x that is zero.
#[test]
fn encodings_that_are_not_canonical_make_no_signature() {
    let [secret, _] = scalars();
    let key = EdwardsPoint::mul_base(&secret).compress().to_bytes();
    let mut tried = 0;
    for y in 0..=18_u8 {
        for sign in [0, 0x80] {
            // p + y, with p = 2^255 - 19.
            let mut encoding = [0xff; 32];
            encoding[0] = 0xed + y;
            encoding[31] = 0x7f | sign;
            let Some(point) = CompressedEdwardsY(encoding).decompress() else { continue };
            tried += 1;
            assert_ne!(point.compress().to_bytes(), encoding);
            // As R, with the challenge of what was sent and of what it stands for.
            for hashed in [encoding, point.compress().to_bytes()] {
                let statement = b"non-canonical R";
                let s = challenge(&hashed, &key, statement) * secret;
                for s in [s, Scalar::ZERO] {
                    assert_eq!(decisions(&key, statement, encoding, s.to_bytes()), [false; 3], "y {y}");
                }
            }
            // As a key: R is such that the equation holds where the key is of small order.
            let r = EdwardsPoint::mul_base(&secret).compress().to_bytes();
            for hashed in [encoding, point.compress().to_bytes()] {
                let statement = statement(&r, &hashed, |k| torsion(k) == EIGHT_TORSION[0]);
                assert_eq!(decisions(&encoding, &statement, r, secret.to_bytes()), [false; 3], "y {y}");
            }
        }
    }
    assert!(tried > 8, "{tried}");
    // Minus zero: the neutral element, and the point of order two.
    for y in [EIGHT_TORSION[0], EIGHT_TORSION[4]] {
        let mut r = y.compress().to_bytes();
        r[31] |= 0x80;
        let statement = statement(&r, &key, |k| torsion(k) == EIGHT_TORSION[0]);
        let s = challenge(&r, &key, &statement) * secret;
        assert_eq!(decisions(&key, &statement, r, s.to_bytes()), [false; 3]);
    }
}

/// The product of both tables at the scalars where digits carry.
#[test]
fn tables_multiply_as_the_library_does() {
    let minus_one = Scalar::ZERO - Scalar::ONE;
    let mut edges = vec![Scalar::ZERO, Scalar::ONE, minus_one, minus_one - Scalar::from(31_u8)];
    for digit in [31_u8, 32, 33, 63] {
        let all = (0..42).fold(Scalar::ZERO, |sum, _| sum * Scalar::from(64_u8) + Scalar::from(digit));
        edges.extend([Scalar::from(digit), all, all - Scalar::ONE, minus_one - all]);
    }
    let [secret, nonce] = scalars();
    edges.extend([secret, nonce, secret * nonce]);
    for torsion in [EdwardsPoint::identity(), EIGHT_TORSION[1]] {
        let key = VerifyingKey::from(EdwardsPoint::mul_base(&secret) + torsion);
        let tables = Tables::new(&Base::new(), &key);
        for s in &edges {
            for k in &edges {
                let expected = ED25519_BASEPOINT_POINT * s - key.to_edwards() * k;
                assert_eq!(tables.combine(s, k), expected, "{s:?} {k:?}");
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Change {
    None,
    /// Of one bit of R, s, statement or key.
    Bit(usize),
    /// The order added to s.
    Malleable,
    /// R and s are what they are not.
    Swapped,
    Other {
        r: [u8; 32],
        s: [u8; 32],
    },
    Key([u8; 32]),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::None),
        any::<usize>().prop_map(Change::Bit),
        Just(Change::Malleable),
        Just(Change::Swapped),
        any::<([u8; 32], [u8; 32])>().prop_map(|(r, s)| Change::Other { r, s }),
        any::<[u8; 32]>().prop_map(Change::Key),
    ]
}

proptest! {
    #[test]
    fn strict_verification_and_tables_agree(
        secret in any::<[u8; 32]>(), mut statement in prop::collection::vec(any::<u8>(), 0..300), change in change(),
    ) {
        let signing = SigningKey::from_bytes(&secret);
        let mut key = signing.verifying_key().to_bytes();
        let signature = signing.sign(&statement);
        let (mut r, mut s) = (*signature.r_bytes(), *signature.s_bytes());
        match &change {
            Change::None => {}
            Change::Bit(at) => {
                let mut bytes = [&mut r[..], &mut s, &mut statement, &mut key].into_iter().flatten().collect::<Vec<_>>();
                let at = at % (bytes.len() * 8);
                *bytes[at / 8] ^= 1 << (at % 8);
            }
            Change::Malleable => s = above_order(&Scalar::from_bytes_mod_order(s)),
            Change::Swapped => std::mem::swap(&mut r, &mut s),
            Change::Other { r: other_r, s: other_s } => (r, s) = (*other_r, *other_s),
            Change::Key(other) => key = *other,
        }
        let holds = matches!(change, Change::None);
        prop_assert_eq!(decisions(&key, &statement, r, s), [holds; 3]);
    }
}
