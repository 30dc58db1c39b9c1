//! Files over MAVLink (<https://mavlink.io/en/services/ftp.html>) as ArduCopter 4.6 serves them (its `GCS_FTP.cpp`): one session
//! at a time, `@PARAM/param.pck` with every parameter, and a volume that is lost at power-off. 3.5.7 has none of it.
//!
//! An operation that 4.6 does not know (TruncateFile, ListDirectoryWithTime) is refused as *Fail*; clients then list without times.

use std::collections::BTreeMap;

use wingbeat_autopilot::dialect::{FILE_TRANSFER_PROTOCOL_DATA, MavMessage, MavSeverity};
use wingbeat_geo::{Duration, Instant};

use super::FlightController;
use super::link::Sender;

/// Bytes of a payload in front of its data.
const HEADER_LEN: usize = 12;
/// Bytes of data in one message.
const DATA_LEN: usize = 239;
/// A session is taken from a client that was silent for so long (ArduPilot, `FTP_SESSION_TIMEOUT`).
const SESSION_TIMEOUT: Duration = Duration::from_secs(3);
/// Messages of one burst (ArduPilot).
const BURST_MESSAGES: u16 = 500;
/// Of these in a tick: a third of a line of 921600 baud, as ArduPilot spares it.
const BURST_PER_TICK: u16 = 2;
/// What the volume holds: all files together, and their number.
const VOLUME_BYTES: usize = 1 << 20;
const VOLUME_FILES: usize = 256;
/// The file of all parameters.
const PARAMETERS: &str = "@PARAM/param.pck";
/// Folders that are not of the volume.
const VIRTUAL_FOLDERS: [&str; 1] = ["@PARAM"];

/// Operations and errors, by the protocol's numbers.
mod op {
    pub(super) const NONE: u8 = 0;
    pub(super) const TERMINATE: u8 = 1;
    pub(super) const RESET: u8 = 2;
    pub(super) const LIST: u8 = 3;
    pub(super) const OPEN_RO: u8 = 4;
    pub(super) const READ: u8 = 5;
    pub(super) const CREATE: u8 = 6;
    pub(super) const WRITE: u8 = 7;
    pub(super) const REMOVE_FILE: u8 = 8;
    pub(super) const CREATE_FOLDER: u8 = 9;
    pub(super) const REMOVE_FOLDER: u8 = 10;
    pub(super) const OPEN_WO: u8 = 11;
    pub(super) const RENAME: u8 = 13;
    pub(super) const CRC32: u8 = 14;
    pub(super) const BURST_READ: u8 = 15;
    pub(super) const ACK: u8 = 128;
    pub(super) const NAK: u8 = 129;
}

/// Why an operation is refused; the last is FailErrno with the number behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Fail,
    InvalidDataSize,
    InvalidSession,
    EndOfFile,
    FileExists,
    FileNotFound,
    Errno(u8),
}

/// Linux's numbers.
const NO_SPACE: Refusal = Refusal::Errno(28);
const READ_ONLY: Refusal = Refusal::Errno(30);
const NOT_EMPTY: Refusal = Refusal::Errno(39);
const INVALID_ARGUMENT: Refusal = Refusal::Errno(22);

impl Refusal {
    fn data(self) -> Vec<u8> {
        match self {
            Self::Fail => vec![1],
            Self::Errno(number) => vec![2, number],
            Self::InvalidDataSize => vec![3],
            Self::InvalidSession => vec![4],
            Self::EndOfFile => vec![6],
            Self::FileExists => vec![8],
            Self::FileNotFound => vec![10],
        }
    }
}

/// What a message carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Packet {
    sequence: u16,
    session: u8,
    opcode: u8,
    size: u8,
    asked: u8,
    burst_complete: bool,
    offset: u32,
    data: Vec<u8>,
}

impl Packet {
    fn read(payload: &[u8]) -> Option<Self> {
        let (header, data) = payload.split_at_checked(HEADER_LEN)?;
        Some(Self {
            sequence: u16::from_le_bytes([header[0], header[1]]),
            session: header[2],
            opcode: header[3],
            size: header[4],
            asked: header[5],
            burst_complete: header[6] != 0,
            offset: u32::from_le_bytes([header[8], header[9], header[10], header[11]]),
            data: data.to_vec(),
        })
    }
    fn payload(&self) -> [u8; HEADER_LEN + DATA_LEN] {
        let mut payload = [0; HEADER_LEN + DATA_LEN];
        payload[..2].copy_from_slice(&self.sequence.to_le_bytes());
        payload[2..7].copy_from_slice(&[
            self.session,
            self.opcode,
            self.size,
            self.asked,
            u8::from(self.burst_complete),
        ]);
        payload[8..HEADER_LEN].copy_from_slice(&self.offset.to_le_bytes());
        let len = self.data.len().min(DATA_LEN);
        payload[HEADER_LEN..HEADER_LEN + len].copy_from_slice(&self.data[..len]);
        payload
    }
    /// The path that it names: as long as it says, up to a zero byte, without slashes at its ends.
    fn path(&self) -> Result<String, Refusal> {
        let len = self.data.iter().position(|&byte| byte == 0).unwrap_or(self.data.len());
        let size = usize::from(self.size);
        // Some clients count the zero byte.
        if size == 0 || size != len && size != len + 1 {
            return Err(Refusal::InvalidDataSize);
        }
        let path = core::str::from_utf8(&self.data[..len]).map_err(|_| Refusal::FileNotFound)?;
        Ok(trimmed(path))
    }
}

/// `/logs/` and `logs` are the same.
fn trimmed(path: &str) -> String {
    path.trim_start_matches("./").trim_matches('/').trim_start_matches("./").trim_matches('.').to_owned()
}

/// A file or a folder of the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File(Vec<u8>),
}

/// An open file.
#[derive(Clone, Debug)]
struct Open {
    path: String,
    /// As it was when it was opened to be read; none of one that is written.
    content: Option<Vec<u8>>,
}

/// A burst that is being sent.
#[derive(Clone, Debug)]
struct Burst {
    reply: Packet,
    to: Sender,
    chunk: usize,
    left: u16,
}

/// The files and the session.
#[derive(Debug, Default)]
pub(super) struct Files {
    volume: BTreeMap<String, Node>,
    open: Option<Open>,
    session: u8,
    used_at: Instant,
    burst: Option<Burst>,
    /// The answer given last: a request that comes again because its answer was lost is not carried out again.
    answered: Option<(Sender, Packet)>,
}

/// CRC-32 (polynomial 0xEDB88320) without inversions, as ArduPilot and PX4 compute it.
fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

impl Files {
    fn is_folder(&self, path: &str) -> bool {
        path.is_empty() || VIRTUAL_FOLDERS.contains(&path) || self.volume.get(path) == Some(&Node::Folder)
    }

    /// Name, and size where it is a file, of what is directly in a folder.
    fn list(&self, folder: &str, parameters_len: usize) -> Result<Vec<(String, Option<usize>)>, Refusal> {
        if !self.is_folder(folder) {
            return Err(Refusal::FileNotFound);
        }
        if let Some(file) = PARAMETERS.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) {
            return Ok(vec![(file.to_owned(), Some(parameters_len))]);
        }
        let mut entries = Vec::new();
        for (path, node) in &self.volume {
            if parent(path) == folder {
                let size = match node {
                    Node::Folder => None,
                    Node::File(content) => Some(content.len()),
                };
                entries.push((path.rsplit('/').next().unwrap_or(path).to_owned(), size));
            }
        }
        if folder.is_empty() {
            entries.extend(VIRTUAL_FOLDERS.map(|name| (name.to_owned(), None)));
        }
        Ok(entries)
    }

    fn used_bytes(&self) -> usize {
        let of_file = |node: &Node| match node {
            Node::Folder => 0,
            Node::File(content) => content.len(),
        };
        self.volume.values().map(of_file).sum()
    }

    /// Opens a file to be written, made or emptied if `anew`.
    fn open_to_write(&mut self, path: String, anew: bool) -> Result<(), Refusal> {
        if path.starts_with('@') {
            return Err(READ_ONLY);
        }
        if self.is_folder(&path) {
            return Err(Refusal::Fail);
        }
        let is_there = self.volume.contains_key(&path);
        if !is_there && (!anew || !self.is_folder(parent(&path))) {
            return Err(Refusal::FileNotFound);
        }
        if !is_there && self.volume.len() >= VOLUME_FILES {
            return Err(NO_SPACE);
        }
        if anew {
            self.volume.insert(path.clone(), Node::File(Vec::new()));
        }
        self.open = Some(Open { path, content: None });
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Refusal> {
        let Some(open) = &self.open else { return Err(Refusal::FileNotFound) };
        if open.content.is_some() {
            return Err(Refusal::Fail);
        }
        let end = (offset as usize).saturating_add(bytes.len());
        let len = match self.volume.get(&open.path) {
            Some(Node::File(content)) => content.len(),
            Some(Node::Folder) | None => return Err(Refusal::FileNotFound),
        };
        if self.used_bytes() + end.saturating_sub(len) > VOLUME_BYTES {
            return Err(NO_SPACE);
        }
        if let Some(Node::File(content)) = self.volume.get_mut(&open.path) {
            content.resize(len.max(end), 0);
            content[end - bytes.len()..end].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<(), Refusal> {
        if path.starts_with('@') {
            return Err(READ_ONLY);
        }
        if self.volume.keys().any(|other| parent(other) == path) {
            return Err(NOT_EMPTY);
        }
        self.volume.remove(path).map(drop).ok_or(Refusal::FileNotFound)
    }

    fn make_folder(&mut self, path: String) -> Result<(), Refusal> {
        if self.is_folder(&path) || self.volume.contains_key(&path) {
            return Err(Refusal::FileExists);
        }
        if path.starts_with('@') || !self.is_folder(parent(&path)) {
            return Err(Refusal::FileNotFound);
        }
        if self.volume.len() >= VOLUME_FILES {
            return Err(NO_SPACE);
        }
        self.volume.insert(path, Node::Folder);
        Ok(())
    }

    fn rename(&mut self, request: &Packet) -> Result<(), Refusal> {
        let names = request.data.get(..usize::from(request.size)).ok_or(Refusal::InvalidDataSize)?;
        let mut names = names.split(|&byte| byte == 0).map(|name| core::str::from_utf8(name).map(trimmed));
        let (Some(Ok(from)), Some(Ok(to))) = (names.next(), names.next()) else {
            return Err(Refusal::InvalidDataSize);
        };
        if self.volume.contains_key(&to) || self.volume.keys().any(|other| parent(other) == from) {
            return Err(Refusal::FileExists);
        }
        if to.is_empty() || to.starts_with('@') || !self.is_folder(parent(&to)) {
            return Err(Refusal::FileNotFound);
        }
        let node = self.volume.remove(&from).ok_or(Refusal::FileNotFound)?;
        self.volume.insert(to, node);
        Ok(())
    }

    fn close(&mut self) {
        (self.open, self.burst, self.session) = (None, None, 0);
    }

    /// The content of the file that is open to be read.
    fn readable(&self) -> Result<&[u8], Refusal> {
        let open = self.open.as_ref().ok_or(Refusal::FileNotFound)?;
        open.content.as_deref().ok_or(Refusal::Fail)
    }
}

impl FlightController {
    pub(super) fn handle_file_transfer(&mut self, m: &FILE_TRANSFER_PROTOCOL_DATA, from: Sender) {
        let Some(request) = Packet::read(&m.payload[..]) else { return };
        let again = self.files.answered.clone().filter(|(to, reply)| {
            *to == from
                && reply.session == request.session
                && reply.asked == request.opcode
                && reply.sequence == request.sequence.wrapping_add(1)
        });
        if let Some((to, reply)) = again {
            return self.send_file_packet(&reply, to);
        }
        // An answer is none of ours.
        if request.opcode == op::ACK || request.opcode == op::NAK {
            return;
        }
        let mut reply = Packet {
            sequence: request.sequence.wrapping_add(1),
            session: request.session,
            asked: request.opcode,
            opcode: op::ACK,
            ..Packet::default()
        };
        let ends = request.opcode == op::TERMINATE || request.opcode == op::RESET;
        let is_other = self.files.open.is_some() && request.session != self.files.session;
        let done = if is_other && ends {
            Ok(())
        } else if is_other && self.now.since(self.files.used_at) < SESSION_TIMEOUT {
            Err(Refusal::InvalidSession)
        } else {
            if is_other {
                self.files.close();
            }
            self.carry_out(&request, &mut reply, from)
        };
        if let Err(refusal) = done {
            reply = Packet { opcode: op::NAK, data: refusal.data(), offset: request.offset, ..reply };
        }
        // A burst sends its messages by itself.
        if self.files.burst.is_some() && request.opcode == op::BURST_READ && done.is_ok() {
            return;
        }
        reply.size = reply.data.len() as u8;
        self.send_file_packet(&reply, from);
        self.files.answered = Some((from, reply));
    }

    fn carry_out(&mut self, request: &Packet, reply: &mut Packet, from: Sender) -> Result<(), Refusal> {
        self.files.used_at = self.now;
        let asked = request.data.get(..usize::from(request.size)).ok_or(Refusal::InvalidDataSize)?;
        match request.opcode {
            op::NONE => {}
            op::TERMINATE | op::RESET => self.files.close(),
            op::LIST => reply.data = self.listed(&request.path()?, request.offset)?,
            op::OPEN_RO => {
                if self.files.open.is_some() {
                    return Err(Refusal::Fail);
                }
                let path = request.path()?;
                let content = self.file_content(&path)?;
                reply.data = (content.len() as u32).to_le_bytes().to_vec();
                if path.starts_with(PARAMETERS) {
                    self.send_banner();
                }
                self.files.open = Some(Open { path, content: Some(content) });
                self.files.session = request.session;
            }
            op::OPEN_WO | op::CREATE => {
                if self.files.open.is_some() {
                    return Err(Refusal::Fail);
                }
                self.files.open_to_write(request.path()?, request.opcode == op::CREATE)?;
                self.files.session = request.session;
            }
            op::READ => {
                let content = self.files.readable()?;
                let start = (request.offset as usize).min(content.len());
                let end = (start + usize::from(request.size)).min(content.len());
                reply.data = content[start..end].to_vec();
                if reply.data.is_empty() {
                    return Err(Refusal::EndOfFile);
                }
                reply.offset = request.offset;
            }
            op::WRITE => {
                self.files.write(request.offset, asked)?;
                reply.offset = request.offset;
            }
            op::REMOVE_FILE | op::REMOVE_FOLDER => self.files.remove(&request.path()?)?,
            op::CREATE_FOLDER => self.files.make_folder(request.path()?)?,
            op::RENAME => self.files.rename(request)?,
            op::CRC32 => {
                let content = self.file_content(&request.path()?)?;
                reply.data = crc32(&content).to_le_bytes().to_vec();
            }
            op::BURST_READ => {
                self.files.readable()?;
                let chunk = if request.size == 0 { DATA_LEN } else { usize::from(request.size) };
                let reply = Packet { offset: request.offset, ..reply.clone() };
                self.files.burst = Some(Burst { reply, to: from, chunk, left: BURST_MESSAGES });
            }
            other => {
                let debug = MavSeverity::MAV_SEVERITY_DEBUG;
                self.send_text(debug, format_args!("Unsupported FTP: {other}"));
                return Err(Refusal::Fail);
            }
        }
        Ok(())
    }

    /// The content of a file; of the parameters' what its query selects.
    fn file_content(&self, path: &str) -> Result<Vec<u8>, Refusal> {
        let query = path.strip_prefix(PARAMETERS).map(|rest| rest.strip_prefix('?').unwrap_or(rest));
        match (query, self.files.volume.get(path)) {
            (Some(query), _) => self.parameters.packed(query).ok_or(INVALID_ARGUMENT),
            (None, Some(Node::File(content))) => Ok(content.clone()),
            (None, Some(Node::Folder) | None) => Err(Refusal::FileNotFound),
        }
    }

    /// The entries of a folder from number `offset` on, as many as one message holds.
    fn listed(&self, folder: &str, offset: u32) -> Result<Vec<u8>, Refusal> {
        let parameters_len = self.parameters.packed("").map_or(0, |content| content.len());
        let entries = self.files.list(folder, parameters_len)?;
        let mut data = Vec::new();
        for (name, size) in entries.into_iter().skip(offset as usize) {
            let entry = match size {
                Some(size) => format!("F{name}\t{size}\0"),
                None => format!("D{name}\0"),
            };
            if data.len() + entry.len() >= DATA_LEN {
                break;
            }
            data.extend_from_slice(entry.as_bytes());
        }
        if data.is_empty() { Err(Refusal::EndOfFile) } else { Ok(data) }
    }

    fn send_file_packet(&mut self, packet: &Packet, to: Sender) {
        self.send(&MavMessage::FILE_TRANSFER_PROTOCOL(FILE_TRANSFER_PROTOCOL_DATA {
            target_network: 0,
            target_system: to.system,
            target_component: to.component,
            payload: packet.payload(),
        }));
    }

    /// The next messages of a burst.
    pub(super) fn run_file_burst(&mut self) {
        for _ in 0..BURST_PER_TICK {
            let Some(mut burst) = self.files.burst.take() else { return };
            self.files.used_at = self.now;
            let content = self.files.readable().unwrap_or_default();
            let start = (burst.reply.offset as usize).min(content.len());
            let end = (start + burst.chunk).min(content.len());
            burst.reply.data = content[start..end].to_vec();
            burst.left -= 1;
            if burst.reply.data.is_empty() {
                let data = Refusal::EndOfFile.data();
                burst.reply = Packet { opcode: op::NAK, burst_complete: true, data, ..burst.reply };
                burst.left = 0;
            }
            burst.reply.burst_complete |= burst.left == 0;
            burst.reply.size = burst.reply.data.len() as u8;
            self.send_file_packet(&burst.reply, burst.to);
            burst.reply.offset += (end - start) as u32;
            burst.reply.sequence = burst.reply.sequence.wrapping_add(1);
            if burst.left > 0 {
                self.files.burst = Some(burst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_arducopters() {
        // Without inversions: nothing is 0, and so are zeros.
        assert_eq!([crc32(b""), crc32(&[0; 9])], [0, 0]);
        // The usual CRC-32 of "123456789" is cbf43926.
        assert_eq!(crc32(b"123456789"), 0x2dfd_2d88);
    }

    #[test]
    fn a_path_is_as_long_as_its_message_says() {
        let packet = |size, data: &[u8]| Packet { size, data: data.to_vec(), ..Packet::default() };
        assert_eq!(packet(5, b"/logs").path(), Ok("logs".into()));
        assert_eq!(packet(7, b"/logs/\0\0\0").path(), Ok("logs".into()));
        assert_eq!(packet(1, b"/\0").path(), Ok(String::new()));
        assert_eq!(packet(0, b"/").path(), Err(Refusal::InvalidDataSize));
        assert_eq!(packet(3, b"/logs").path(), Err(Refusal::InvalidDataSize));
        assert_eq!(packet(2, b"/\xff").path(), Err(Refusal::FileNotFound));
    }
}
