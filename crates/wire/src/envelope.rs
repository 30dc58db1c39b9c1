//! The envelope of a datagram: version, key epoch, fleet tag, content, signature.
//!
//! ```text
//! version 1 | epoch 1 | fleet tag 8 | sender | counter | flight | message | signature 64
//! ```
//!
//! The tag is keyed with the fleet's key and covers everything but itself; the signature is the sender's and covers
//! version, epoch and content, with [`DOMAIN`] where the tag stands. So a flood of what is not the fleet's costs its
//! receiver one short hash each.

use core::num::NonZeroU32;

use crate::keys::tag;
use crate::read::Ordered;
use crate::{
    Class, DATAGRAM_LEN_MAX, Datagram, FleetKey, Message, ROSTER_MAX, Refused, Role, Roster, Signer, VERSION,
    VehicleId, read,
};

/// Length of the fleet tag.
pub(crate) const TAG_LEN: usize = 8;
/// Length of an Ed25519 signature (RFC 8032, section 5.1.6).
pub const SIGNATURE_LEN: usize = 64;
/// Version, epoch and tag.
const HEAD_LEN: usize = 2 + TAG_LEN;
/// All that is not content.
pub(crate) const ENVELOPE_LEN: usize = HEAD_LEN + SIGNATURE_LEN;
/// What a key of an aircraft signs here it signs nowhere else.
const DOMAIN: [u8; TAG_LEN] = *b"wingbeat";

/// The bytes of one datagram.
pub(crate) type Bytes = heapless::Vec<u8, DATAGRAM_LEN_MAX>;

/// What proves the sender. Receivers of one kind refuse the others by their version, so that none is ever taken for
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An Ed25519 signature.
    Signed,
    /// Nothing.
    Insecure,
    /// In a bench, a shorter computation of the same length.
    #[cfg(feature = "stand-in")]
    StandIn,
}

impl Kind {
    const fn version(self) -> u8 {
        match self {
            Self::Signed => VERSION,
            Self::Insecure => 0x40 | VERSION,
            #[cfg(feature = "stand-in")]
            Self::StandIn => 0x80 | VERSION,
        }
    }

    const fn signature_len(self) -> usize {
        match self {
            Self::Signed => SIGNATURE_LEN,
            Self::Insecure => 0,
            #[cfg(feature = "stand-in")]
            Self::StandIn => SIGNATURE_LEN,
        }
    }

    /// That of a datagram.
    fn of(version: u8) -> Option<Self> {
        let kinds = [
            Self::Signed,
            Self::Insecure,
            #[cfg(feature = "stand-in")]
            Self::StandIn,
        ];
        kinds.into_iter().find(|kind| kind.version() == version)
    }
}

/// A datagram that is not sealed yet: what an agent hands to its host, which has the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// Room for version, epoch and tag; content; once sealed, the signature.
    bytes: Bytes,
    content_end: usize,
    class: Class,
    /// Another's, sealed by it.
    is_relayed: bool,
}

impl Draft {
    /// Writes a datagram: in place, because a message has room for the largest plan, and most are a few bytes.
    ///
    /// # Errors
    /// [`Refused::TooLong`] when it does not fit: the plan has too many slots. The draft is empty then.
    pub fn write(
        &mut self,
        from: VehicleId,
        counter: u64,
        flight: u32,
        message: &Message,
    ) -> Result<(), Refused> {
        self.begin();
        self.class = message.class();
        // The same fields in the same order as a datagram's: the same bytes.
        let content = (from, counter, flight, message);
        let written = postcard::serialize_with_flavor(&content, read::Tail(&mut self.bytes));
        self.end(written.is_ok())
    }

    /// A draft with any content, also one that is no datagram: what a captured aircraft may send.
    ///
    /// # Errors
    /// [`Refused::TooLong`] when it does not fit.
    pub fn of_content(content: &[u8]) -> Result<Self, Refused> {
        let mut draft = Self::default();
        draft.begin();
        let written = draft.bytes.extend_from_slice(content);
        draft.end(written.is_ok())?;
        Ok(draft)
    }

    /// A datagram of another sender, to be passed on as that sealed it.
    ///
    /// # Errors
    /// [`Refused::TooLong`] when it is longer than a datagram.
    pub fn relay(sealed: &[u8]) -> Result<Self, Refused> {
        let bytes = Bytes::from_slice(sealed).map_err(|_| Refused::TooLong)?;
        // Only orders leave as they were sealed.
        Ok(Self { bytes, content_end: 0, class: Class::Emergency, is_relayed: true })
    }

    fn begin(&mut self) {
        (self.is_relayed, self.content_end) = (false, 0);
        self.bytes.clear();
        // There is room.
        let _ = self.bytes.extend_from_slice(&[0; HEAD_LEN]);
    }

    /// Empty again where not all was written.
    fn end(&mut self, is_written: bool) -> Result<(), Refused> {
        self.content_end = self.bytes.len();
        if is_written && self.content_end + SIGNATURE_LEN <= DATAGRAM_LEN_MAX {
            return Ok(());
        }
        self.bytes.clear();
        self.content_end = 0;
        Err(Refused::TooLong)
    }

    /// The class of its message; that of a beacon where the content is no message.
    pub fn class(&self) -> Class {
        self.class
    }

    /// The bytes between the envelope's: sender, counter, flight, message. None of one that is passed on.
    pub fn content(&self) -> &[u8] {
        self.bytes.get(HEAD_LEN..self.content_end).unwrap_or_default()
    }

    /// Bytes of the datagram before its signature.
    pub fn unsigned_len(&self) -> usize {
        self.content_end
    }

    /// The datagram of another sender that this passes on, as that sealed it.
    pub fn relayed(&self) -> Option<&[u8]> {
        self.is_relayed.then_some(self.bytes.as_slice())
    }

    /// What a receiver reads once it has opened it.
    ///
    /// # Errors
    /// Why the content is no datagram.
    pub fn read(&self) -> Result<Datagram, Refused> {
        read_content(self.content())
    }
}

impl Signer {
    /// Bytes that it adds to a draft.
    pub fn signature_len(&self) -> usize {
        self.kind().signature_len()
    }

    /// Seals a draft in place; sealed again it is the same bytes. One that is passed on stays as its sender sealed it.
    pub fn seal<'a>(&self, draft: &'a mut Draft) -> &'a [u8] {
        let Draft { bytes, content_end, is_relayed, .. } = draft;
        if bytes.len() < HEAD_LEN || *is_relayed {
            // Nothing was written: nothing is sealed, nor is what another sealed.
            return bytes;
        }
        bytes.truncate(*content_end);
        (bytes[0], bytes[1]) = (self.kind().version(), self.epoch);
        bytes[2..HEAD_LEN].copy_from_slice(&DOMAIN);
        if let Some(signature) = self.sign(bytes) {
            // A draft leaves room for it.
            let _ = bytes.extend_from_slice(&signature);
        }
        let tag = tag(&self.fleet, [&bytes[..2], &bytes[HEAD_LEN..]]);
        bytes[2..HEAD_LEN].copy_from_slice(&tag);
        bytes
    }
}

/// A datagram that its sender sealed: [`Roster::open`] alone makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    from: VehicleId,
    counter: u64,
    /// The sender's, where keys tell roles apart.
    role: Option<Role>,
    /// Flight and message.
    body: &'a [u8],
    sealed: &'a [u8],
    passed: Option<Passed<'a>>,
}

/// What an opened datagram passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Passed<'a> {
    from: VehicleId,
    counter: u64,
    role: Option<Role>,
    body: &'a [u8],
    sealed: &'a [u8],
}

/// What a datagram claims that bears the fleet's tag, before its signature is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The sender.
    pub from: VehicleId,
    /// Its counter.
    pub counter: u64,
    /// The flight and the member, where it is a console's order to exclude one.
    pub exclusion: Option<(u32, VehicleId)>,
    /// The session of the console's program, where it is any other order and states one.
    pub session: Option<NonZeroU32>,
}

impl Claim {
    fn of(from: VehicleId, counter: u64, body: &[u8]) -> Self {
        let (exclusion, session) = match read::ordered(body) {
            Some(Ordered::Exclusion(flight, member)) => (Some((flight, member)), None),
            Some(Ordered::InSession(session)) => (None, session),
            None => (None, None),
        };
        Self { from, counter, exclusion, session }
    }
}

impl<'a> Opened<'a> {
    /// The sender.
    pub fn from(&self) -> VehicleId {
        self.from
    }

    /// The sender's clock, microseconds: each of its datagrams has a higher one than all before.
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// What it claimed, which is proved now.
    pub fn claim(&self) -> Claim {
        Claim::of(self.from, self.counter, self.body)
    }

    /// The sender's role; none where no keys tell roles apart, and each may send everything.
    pub fn role(&self) -> Option<Role> {
        self.role
    }

    /// The whole datagram as its sender sealed it, to be passed on.
    pub fn sealed(&self) -> &'a [u8] {
        self.sealed
    }

    /// The datagram of another sender that this one passes on, which that sender sealed too.
    pub fn passed(&self) -> Option<Opened<'a>> {
        let Passed { from, counter, role, body, sealed } = self.passed?;
        Some(Opened { from, counter, role, body, sealed, passed: None })
    }

    /// Reads it in place: a datagram has room for the largest plan, most are a few bytes, and each is received by every
    /// aircraft.
    ///
    /// # Errors
    /// The one reason why its content is no datagram, or not one that its sender may send; `datagram` holds no meaning then.
    pub fn read_into(&self, datagram: &mut Datagram) -> Result<(), Refused> {
        (datagram.from, datagram.counter) = (self.from, self.counter);
        let rest = read::body(self.body, datagram).map_err(|_| Refused::Malformed)?;
        if !rest.is_empty() {
            return Err(Refused::TrailingBytes);
        }
        if let Some(role) = self.role {
            datagram.message.check_role(role)?;
        }
        datagram.message.check()
    }
}

#[cfg(feature = "replay")]
impl<'a> Opened<'a> {
    /// A datagram of a flight log, which the aircraft's roster opened in flight: with the roles that it gave its sender and
    /// the sender of what it passes on. It proves nothing.
    ///
    /// # Errors
    /// Why the bytes are no datagram.
    pub fn recorded(sealed: &'a [u8], role: Option<Role>, passed: Option<Role>) -> Result<Self, Refused> {
        let one = |sealed: &'a [u8], role| {
            let kind = sealed.first().and_then(|version| Kind::of(*version)).ok_or(Refused::Version)?;
            let (from, counter, body) =
                read::origin(split(sealed, kind)?.1).map_err(|_| Refused::Malformed)?;
            Ok(Self { from, counter, role, body, sealed, passed: None })
        };
        let outer = one(sealed, role)?;
        let Some(inner) = read::passed(outer.body) else { return Ok(outer) };
        let Self { from, counter, role, body, sealed, .. } = one(inner, passed)?;
        Ok(Self { passed: Some(Passed { from, counter, role, body, sealed }), ..outer })
    }
}

impl Roster {
    /// Opens a datagram: of the right version and epoch, tagged by the fleet, signed by its sender.
    ///
    /// # Errors
    /// The one reason why it is dropped. The cheap ones come first.
    pub fn open<'a>(&self, bytes: &'a [u8]) -> Result<Opened<'a>, Refused> {
        self.open_if(bytes, |_| Ok(()))
    }

    /// The same, where `admits` refuses by what is claimed alone before the signature is checked: a recorded datagram
    /// that is sent again costs no more than one of an outsider. What it admits is not proved yet.
    ///
    /// # Errors
    /// As [`Roster::open`], and what `admits` answers.
    pub fn open_if<'a>(
        &self,
        bytes: &'a [u8],
        admits: impl FnOnce(&Claim) -> Result<(), Refused>,
    ) -> Result<Opened<'a>, Refused> {
        let outer = self.open_one(bytes, admits)?;
        let Some(inner) = read::passed(outer.body) else { return Ok(outer) };
        // One that passes on what is not the fleet's is refused as a whole.
        let Opened { from, counter, role, body, sealed, .. } = self.open_one(inner, |_| Ok(()))?;
        Ok(Opened { passed: Some(Passed { from, counter, role, body, sealed }), ..outer })
    }

    fn open_one<'a>(
        &self,
        bytes: &'a [u8],
        admits: impl FnOnce(&Claim) -> Result<(), Refused>,
    ) -> Result<Opened<'a>, Refused> {
        let kind = self.kind();
        let (from, counter, body) = of_fleet(kind, self.epoch, &self.fleet, bytes)?;
        self.check_sender(from)?;
        admits(&Claim::of(from, counter, body))?;
        let mut statement = [0; DATAGRAM_LEN_MAX];
        let signed = bytes.len() - kind.signature_len();
        let statement = &mut statement[..signed];
        statement.copy_from_slice(&bytes[..signed]);
        statement[2..HEAD_LEN].copy_from_slice(&DOMAIN);
        self.check_signature(from, statement, &bytes[signed..])?;
        Ok(Opened { from, counter, role: self.role(from), body, sealed: bytes, passed: None })
    }
}

/// The content of a datagram that bears the fleet's tag: sender, counter, flight and message.
fn of_fleet<'a>(
    kind: Kind,
    epoch: u8,
    fleet: &FleetKey,
    bytes: &'a [u8],
) -> Result<(VehicleId, u64, &'a [u8]), Refused> {
    let &version = bytes.first().ok_or(Refused::Empty)?;
    if bytes.len() > DATAGRAM_LEN_MAX {
        return Err(Refused::TooLong);
    }
    if version != kind.version() {
        return Err(Refused::Version);
    }
    let (envelope, content) = split(bytes, kind)?;
    // A receiver of another epoch has another fleet key: that it is the epoch is worth a reason of its own.
    if envelope.epoch != epoch {
        return Err(Refused::Epoch);
    }
    if envelope.tag != tag(fleet, [&bytes[..2], &bytes[HEAD_LEN..]]) {
        return Err(Refused::FleetTag);
    }
    read::origin(content).map_err(|_| Refused::Malformed)
}

/// What of a [`Roster`] refuses the datagrams of outsiders, without the keys of its members: small, for the task that
/// receives. So what any transmitter sends takes no place in a queue in which the fleet's datagrams wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    kind: Kind,
    epoch: u8,
    fleet: FleetKey,
    /// None where no keys distinguish senders.
    senders: Option<heapless::Vec<VehicleId, ROSTER_MAX>>,
}

impl Roster {
    /// What of it refuses outsiders.
    pub fn screen(&self) -> Screen {
        let senders = (self.kind() == Kind::Signed).then(|| self.senders().map(|(id, _)| id).collect());
        Screen { kind: self.kind(), epoch: self.epoch, fleet: self.fleet.clone(), senders }
    }
}

impl Screen {
    /// The sender that a datagram of the fleet claims, which its signature alone proves.
    ///
    /// # Errors
    /// The reason for which [`Roster::open`] refuses it too.
    pub fn check(&self, bytes: &[u8]) -> Result<VehicleId, Refused> {
        let (from, ..) = of_fleet(self.kind, self.epoch, &self.fleet, bytes)?;
        let is_known = self.senders.as_ref().is_none_or(|senders| senders.contains(&from));
        if is_known { Ok(from) } else { Err(Refused::UnknownSender) }
    }
}

/// The datagram in some bytes of whatever kind, believed or not: for logs and benches, which fly nothing by it.
///
/// # Errors
/// The one reason why it is none.
pub fn read_unverified(bytes: &[u8]) -> Result<Datagram, Refused> {
    let &version = bytes.first().ok_or(Refused::Empty)?;
    if bytes.len() > DATAGRAM_LEN_MAX {
        return Err(Refused::TooLong);
    }
    let kind = Kind::of(version).ok_or(Refused::Version)?;
    read_content(split(bytes, kind)?.1)
}

/// The sender that such bytes state, believed or not.
pub fn sender_unverified(bytes: &[u8]) -> Option<VehicleId> {
    read::origin(bytes.get(HEAD_LEN..)?).ok().map(|(from, ..)| from)
}

struct Envelope {
    epoch: u8,
    tag: [u8; TAG_LEN],
}

fn split(bytes: &[u8], kind: Kind) -> Result<(Envelope, &[u8]), Refused> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_LEN>().ok_or(Refused::Malformed)?;
    let content_len = rest.len().checked_sub(kind.signature_len()).ok_or(Refused::Malformed)?;
    let [_, epoch, tag @ ..] = *head;
    Ok((Envelope { epoch, tag }, &rest[..content_len]))
}

fn read_content(content: &[u8]) -> Result<Datagram, Refused> {
    let (from, counter, body) = read::origin(content).map_err(|_| Refused::Malformed)?;
    let mut datagram = Datagram::blank();
    Opened { from, counter, role: None, body, sealed: &[], passed: None }.read_into(&mut datagram)?;
    Ok(datagram)
}
