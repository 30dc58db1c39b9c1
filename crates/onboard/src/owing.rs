//! Keeps over a restart and a power cut what is owed to the pilot: parameters that are overridden, a line for each in a file of the
//! state directory. The frame that overrides one leaves when the file is on the disk, and not before.

use std::{fs, io, path::Path, sync::mpsc, thread};

use tokio::sync::oneshot;
use wingbeat_agent::{OWED_MAX, Owed, ParameterName, ParameterValue};
use wingbeat_keys::file;

/// The file's name in the state directory.
const FILE: &str = "owed-parameters";
/// No file that is written here is longer.
const LEN_MAX: usize = 4096;

/// The lines of a file, and where the outcome of writing them goes.
type Job = (String, oneshot::Sender<io::Result<()>>);

/// What is owed. Without a directory it keeps nothing.
#[derive(Debug, Default)]
pub(crate) struct Owing {
    /// What the file holds, or will.
    kept: Vec<Owed>,
    problems: Vec<String>,
    /// To the thread that writes: a slow card does not delay the driver.
    writer: Option<mpsc::Sender<Job>>,
}

impl Owing {
    /// Reads what an earlier daemon owed. Lines that are none are said, and the others count.
    pub(crate) fn open(directory: Option<&Path>) -> Self {
        let Some(directory) = directory else { return Self::default() };
        let path = directory.join(FILE);
        let mut problems = Vec::new();
        let problem = |found: &dyn std::fmt::Display, expected: &str| {
            format!("{}: found {found}, expected {expected}", path.display())
        };
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes[..bytes.len().min(LEN_MAX)]).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                problems.push(problem(&error, "what is owed to the pilot"));
                String::new()
            }
        };
        let mut kept = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            match read(line).filter(|_| kept.len() < OWED_MAX) {
                Some(owed) => kept.push(owed),
                None => {
                    let shown: String = line.chars().filter(|c| !c.is_control()).take(64).collect();
                    let expected =
                        "a parameter, i or r, the pilot's value and the one that overrides it (or -)";
                    problems.push(problem(&format_args!("{shown:?}"), expected));
                }
            }
        }
        let (writer, jobs) = mpsc::channel();
        let thread = thread::Builder::new().name("owed".into()).spawn(move || write_all(&path, &jobs));
        if let Err(error) = thread {
            problems.push(format!("{FILE}: found {error}, expected a thread that writes it"));
        }
        Self { kept, problems, writer: Some(writer) }
    }

    /// What was wrong with the file, a line each.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// What the last daemon owed.
    pub(crate) fn kept(&self) -> &[Owed] {
        &self.kept
    }

    /// Keeps what is owed now. Where there is more than before, how its writing ends: nothing that overrides it may leave before.
    pub(crate) fn keep(&mut self, owed: &[Owed]) -> Option<oneshot::Receiver<io::Result<()>>> {
        if self.kept == owed {
            return None;
        }
        let is_more = owed.iter().any(|one| !self.kept.contains(one));
        self.kept = owed.to_vec();
        let writer = self.writer.as_ref()?;
        let (done, written) = oneshot::channel();
        let lines: Vec<String> = owed.iter().map(line).collect();
        // Without its thread the receiver learns it from the dropped end.
        let _ = writer.send((lines.join("\n"), done));
        is_more.then_some(written)
    }
}

fn line(owed: &Owed) -> String {
    let kind = if owed.pilots.as_integer().is_some() { 'i' } else { 'r' };
    let ours = owed.ours.map_or_else(|| "-".to_owned(), |ours| ours.to_string());
    format!("{} {kind} {} {ours}", owed.name, owed.pilots)
}

fn read(line: &str) -> Option<Owed> {
    let mut words = line.split(' ');
    let (name, kind, pilots, ours) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let value = |text: &str| match kind {
        "i" => text.parse().ok().map(ParameterValue::Integer),
        "r" => text.parse().ok().filter(|value: &f32| value.is_finite()).map(ParameterValue::Real),
        _ => None,
    };
    let ours = if ours == "-" { None } else { Some(value(ours)?) };
    let owed = Owed { name: ParameterName::new(name)?, pilots: value(pilots)?, ours };
    words.next().is_none().then_some(owed)
}

fn write_all(path: &Path, jobs: &mpsc::Receiver<Job>) {
    while let Ok((lines, done)) = jobs.recv() {
        let written = if lines.is_empty() {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => file::sync_folder(path),
            }
        } else {
            file::write(path, &lines)
        };
        if let Err(error) = &written {
            let path = path.display();
            tracing::error!("{path}: found {error}, expected to keep there what is owed to the pilot");
        }
        // What is owed no more is waited for by none.
        let _ = done.send(written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owed(name: &str, pilots: ParameterValue, ours: Option<ParameterValue>) -> Owed {
        Owed { name: ParameterName::new(name).unwrap(), pilots, ours }
    }

    #[tokio::test]
    async fn what_is_owed_is_on_the_disk_before_it_is_waited_for_no_more() {
        use ParameterValue::{Integer, Real};
        let folder = tempfile::tempdir().unwrap();
        let all = [
            owed("FS_EKF_ACTION", Integer(2), Some(Integer(1))),
            owed("RTL_ALT_M", Real(15.25), None),
            owed("RTL_CONE_SLOPE", Real(-3.5e-7), None),
        ];
        let mut owing = Owing::open(Some(folder.path()));
        assert!(owing.kept().is_empty() && owing.problems().is_empty());
        owing.keep(&all).unwrap().await.unwrap().unwrap();
        assert!(owing.keep(&all).is_none(), "it is there");
        let mut again = Owing::open(Some(folder.path()));
        assert_eq!((again.kept(), again.problems().len()), (&all[..], 0));
        assert!(again.keep(&all[1..]).is_none(), "less is waited for by none");
        again.keep(&all[..1]).unwrap().await.unwrap().unwrap();
        assert!(again.keep(&[]).is_none());
        drop(again);
        let begun = std::time::Instant::now();
        while folder.path().join(FILE).exists() {
            assert!(begun.elapsed().as_secs() < 60);
            tokio::task::yield_now().await;
        }
        assert!(Owing::default().keep(&all).is_none(), "without a directory");
    }

    #[tokio::test]
    async fn a_file_that_is_none_is_said_line_by_line_and_a_disk_that_takes_nothing_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let good = "FS_EKF_ACTION i 2 1";
        fs::write(&path, format!("{good}\nRTL_ALT\nRTL_ALT i 1.5 -\nRTL_ALT r inf -\nA_NAME_THAT_IS_FAR_TOO_LONG i 1 -\nX i 1 - -\n\u{1b}[2J"))
            .unwrap();
        let owing = Owing::open(Some(folder.path()));
        assert_eq!((owing.kept().len(), owing.problems().len()), (1, 6), "{:?}", owing.problems());
        assert!(owing.problems().iter().all(|line| !line.chars().any(char::is_control)));
        let mut gone = Owing::open(Some(&folder.path().join("missing")));
        let one = [owed("X", ParameterValue::Integer(1), None)];
        assert!(gone.keep(&one).unwrap().await.unwrap().is_err());
        // A file of another daemon's, as long as it likes.
        fs::write(&path, format!("{good}\n").repeat(1_000)).unwrap();
        assert_eq!(Owing::open(Some(folder.path())).kept().len(), OWED_MAX);
    }
}
