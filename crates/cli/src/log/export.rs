//! `wingbeat log export`: a flight in formats of others. Each log is read once, whatever is written of it, and one after the other
//! is let go: a hundred aircraft of an hour are larger than memory.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use wingbeat_bench::run::each;
use wingbeat_record::export::track::{self, Flown, Track};
use wingbeat_record::export::{parquet, tlog};

use super::{files_in, read};

/// Arguments of `wingbeat log export`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The logs, one for each aircraft, or the folder of a bundle; parts that follow are read too.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The format; several are written into a folder.
    #[arg(long, value_enum, required = true, value_delimiter = ',', value_name = "FORMAT")]
    to: Vec<Format>,
    /// Without heights: ns2, bonnmotion, scr.
    #[arg(long)]
    flat: bool,
    /// The file to write, standard output without it; the folder where several formats, or tlog or csv of several aircraft, are
    /// written.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Formats of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Format {
    /// MAVLink frames with their times: MAVProxy, mavlogdump, QGroundControl. Of one aircraft.
    Tlog,
    /// Positions with ArduSim's columns. Of one aircraft.
    Csv,
    /// Google Earth.
    Kml,
    /// The same, in an archive.
    Kmz,
    /// ns-2 mobility.
    Ns2,
    /// BonnMotion, for INET.
    Bonnmotion,
    /// A script of AutoCAD.
    Scr,
    /// GPX 1.1.
    Gpx,
    /// A table of positions: pandas, polars, DuckDB, R. Needs --out.
    Parquet,
    /// Each of them.
    All,
}

impl Format {
    fn has_flat(self) -> bool {
        matches!(self, Self::Ns2 | Self::Bonnmotion | Self::Scr | Self::All)
    }

    /// Whether a file is of one aircraft.
    fn is_of_one(self) -> bool {
        matches!(self, Self::Tlog | Self::Csv)
    }

    /// What the names of its files end with in a folder.
    fn ending(self) -> &'static str {
        match self {
            Self::Tlog => "tlog",
            Self::Csv => "csv",
            Self::Kml => "kml",
            Self::Kmz => "kmz",
            Self::Ns2 => "tcl",
            Self::Bonnmotion => "movements",
            Self::Scr => "scr",
            Self::Gpx => "gpx",
            Self::Parquet => "parquet",
            Self::All => "",
        }
    }

    /// Writes the tracks of one or more aircraft.
    fn write(self, tracks: &[Track], with_heights: bool, to: &mut (dyn Write + Send)) -> Result<()> {
        match self {
            Self::Csv => tracks.iter().try_for_each(|track| track::csv(track, &mut *to))?,
            Self::Kml => track::kml(tracks, to)?,
            Self::Kmz => track::kmz(tracks, to)?,
            Self::Scr => track::autocad(tracks, with_heights, to)?,
            Self::Ns2 => track::ns2(tracks, with_heights, to)?,
            Self::Bonnmotion => track::bonnmotion(tracks, with_heights, to)?,
            Self::Gpx => track::gpx(tracks, time, to)?,
            Self::Parquet => parquet::tracks(tracks, to)?,
            // Frames are no tracks; all of them is none.
            Self::Tlog | Self::All => {}
        }
        Ok(())
    }
}

/// Where what is exported goes.
enum Target {
    Output,
    File(PathBuf),
    Folder(PathBuf),
}

impl Target {
    fn open(&self, name: &str) -> Result<Box<dyn Write + Send>> {
        let create = |path: &Path| -> Result<Box<dyn Write + Send>> {
            let file = File::create(path).with_context(|| format!("--out {}", path.display()))?;
            Ok(Box::new(BufWriter::new(file)))
        };
        match self {
            Self::Output => Ok(Box::new(BufWriter::new(std::io::stdout()))),
            Self::File(path) => create(path),
            Self::Folder(folder) => create(&folder.join(name)),
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let formats: BTreeSet<Format> = if arguments.to.contains(&Format::All) {
        Format::value_variants().iter().copied().filter(|format| *format != Format::All).collect()
    } else {
        arguments.to.iter().copied().collect()
    };
    ensure!(
        !arguments.flat || formats.iter().any(|format| format.has_flat()),
        "--flat: found a format without it, expected ns2, bonnmotion or scr"
    );
    let mut files = Vec::new();
    for path in &arguments.files {
        files.extend(files_in(path)?);
    }
    let target = target(&formats, files.len(), arguments.out.as_deref())?;
    let names = names(&files);
    let jobs: Vec<(&PathBuf, &String)> = files.iter().zip(&names).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let flown = each(&jobs, threads, |(file, name)| {
        let log = read(file)?;
        if formats.contains(&Format::Tlog) {
            let mut to = target.open(&format!("{name}.tlog"))?;
            tlog::write(&log, &mut to)?;
            to.flush()?;
        }
        Ok(Flown::of(&log))
    })?;
    let tracks = track::on_one_time(flown);
    let of_tracks: Vec<Format> = formats.into_iter().filter(|format| *format != Format::Tlog).collect();
    if !of_tracks.is_empty() {
        for track in tracks.iter().filter(|track| track.fixes.is_empty()) {
            eprintln!("{}: found no position in its log: it is left out", track.name);
        }
    }
    let with_heights = !arguments.flat;
    each(&of_tracks, threads, |format| {
        let ending = format.ending();
        let one = |name: &str, tracks: &[Track]| -> Result<()> {
            let mut to = target.open(&format!("{name}.{ending}"))?;
            format.write(tracks, with_heights, &mut *to)?;
            Ok(to.flush()?)
        };
        if format.is_of_one() {
            names.iter().zip(&tracks).try_for_each(|(name, track)| one(name, std::slice::from_ref(track)))
        } else {
            one("tracks", &tracks)
        }
    })?;
    Ok(())
}

/// One file or output for one format, a folder for what is several files.
fn target(formats: &BTreeSet<Format>, logs: usize, out: Option<&Path>) -> Result<Target> {
    let is_several = formats.len() > 1 || logs > 1 && formats.iter().any(|format| format.is_of_one());
    let Some(out) = out else {
        ensure!(
            !is_several,
            "--out FOLDER: found none for {logs} logs in {} formats, expected a folder: that is several files",
            formats.len()
        );
        ensure!(
            !formats.contains(&Format::Parquet),
            "--out FILE: found none, expected a file: Parquet is no text"
        );
        return Ok(Target::Output);
    };
    if !is_several {
        return Ok(Target::File(out.to_owned()));
    }
    ensure!(
        out.is_dir() || !out.exists(),
        "--out {}: found a file, expected a folder: that is several files",
        out.display()
    );
    fs::create_dir_all(out).with_context(|| format!("--out {}", out.display()))?;
    Ok(Target::Folder(out.to_owned()))
}

/// A name for the files of each log: its own, after that of its folder where another log has it, and a number where that does not
/// do.
fn names(files: &[PathBuf]) -> Vec<String> {
    let own = |file: &Path| file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let after_folder = |file: &Path| {
        let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
        format!("{}-{}", folder.to_string_lossy(), own(file))
    };
    let numbered = || (1..=files.len()).map(|number| format!("{number:03}")).collect();
    let is_distinct = |names: &Vec<String>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let candidates =
        [files.iter().map(|file| own(file)).collect(), files.iter().map(|file| after_folder(file)).collect()];
    candidates.into_iter().find(is_distinct).unwrap_or_else(numbered)
}

/// The text of a moment, microseconds after 1970.
fn time(unix_us: u64) -> String {
    let unix_us = i64::try_from(unix_us).unwrap_or(i64::MAX);
    jiff::Timestamp::from_microsecond(unix_us).unwrap_or(jiff::Timestamp::MAX).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_several_logs_have_names_of_their_own() {
        let named = |files: &[&str]| names(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(named(&["a/uav-001.mcap", "a/uav-002.mcap"]), ["uav-001", "uav-002"]);
        assert_eq!(
            named(&["b/aircraft-1/000001-01.mcap", "b/aircraft-2/000001-01.mcap"]),
            ["aircraft-1-000001-01", "aircraft-2-000001-01"]
        );
        assert_eq!(named(&["x/one.mcap", "x/one.mcap"]), ["001", "002"]);
    }
}
