//! Server-sent events, the reading side: bytes in any cut, whole events out. The format is the WHATWG
//! HTML standard's: lines end with LF, CR or CRLF; a blank line ends an event; a colon begins a comment.

/// More than any status with a hundred neighbours needs; a sender that exceeds it is broken.
pub(crate) const MAX_EVENT_BYTES: usize = 1 << 20;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// What kind; `message` where the sender named none.
    pub(crate) name: String,
    /// Its lines, joined.
    pub(crate) data: String,
}

/// Why the stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the event stream has an event of more than {MAX_EVENT_BYTES} bytes")]
    TooLong,
    #[error("the event stream is not UTF-8")]
    NotUtf8,
}

/// The part of a stream that is not an event yet.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    after_cr: bool,
    begun: bool,
}

impl Parser {
    /// Takes the next bytes and appends the events that they complete.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), Broken> {
        for &byte in bytes {
            let lf_of_crlf = std::mem::replace(&mut self.after_cr, byte == b'\r') && byte == b'\n';
            match byte {
                b'\n' if lf_of_crlf => {}
                b'\n' | b'\r' => self.end_line(out)?,
                _ if self.line.len() + self.data.len() >= MAX_EVENT_BYTES => return Err(Broken::TooLong),
                _ => self.line.push(byte),
            }
        }
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<Event>) -> Result<(), Broken> {
        let bytes = std::mem::take(&mut self.line);
        let mut line = std::str::from_utf8(&bytes).map_err(|_| Broken::NotUtf8)?;
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            if std::mem::take(&mut self.has_data) {
                let name = if name.is_empty() { "message".to_owned() } else { name };
                out.push(Event { name, data });
            }
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            // `id`, `retry` and unknown fields mean nothing here; an empty field is a comment.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn every_cut_gives_the_same_events() {
        let text = "\u{feff}: hello\r\nevent: status\r\ndata: {\"a\":\"é\"}\r\n\r\n\
                    data:x\rdata: y\r\rid: 7\nretry: 5\n\nevent: log\ndata\n\n:keep-alive\n\nevent: half\ndata: 1\n";
        let wanted = [event("status", "{\"a\":\"é\"}"), event("message", "x\ny"), event("log", "")];
        for size in 1..text.len() {
            let (mut parser, mut out) = (Parser::default(), Vec::new());
            for chunk in text.as_bytes().chunks(size) {
                parser.feed(chunk, &mut out).expect("good bytes");
            }
            assert_eq!(out, wanted, "chunks of {size}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let (mut parser, mut out) = (Parser::default(), Vec::new());
        let line = format!("data: {}\n", "x".repeat(1000));
        let refused = (0..2000).find_map(|_| parser.feed(line.as_bytes(), &mut out).err());
        assert_eq!(refused, Some(Broken::TooLong));
        let (mut parser, mut out) = (Parser::default(), Vec::new());
        assert_eq!(parser.feed(&vec![b'x'; MAX_EVENT_BYTES + 1], &mut out), Err(Broken::TooLong));
    }

    #[test]
    fn bytes_that_are_not_text_are_refused() {
        let (mut parser, mut out) = (Parser::default(), Vec::new());
        assert_eq!(parser.feed(b"data: \xff\n\n", &mut out), Err(Broken::NotUtf8));
    }
}
