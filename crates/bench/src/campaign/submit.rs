//! Job files for engines that run many processes on many machines. Each process flies its shard of the campaign into the same
//! folder; one that is started again skips what is there.

use std::fmt::Write as _;
use std::str::FromStr;

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// HyperQueue: `hq submit FILE` (<https://it4innovations.github.io/hyperqueue/stable/jobs/directives/>).
    HyperQueue,
    /// Slurm: `sbatch FILE` (<https://slurm.schedmd.com/sbatch.html>).
    Slurm,
    /// GNU parallel on this machine: `sh FILE` (<https://www.gnu.org/software/parallel/parallel.html>).
    Parallel,
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "hyperqueue" => Ok(Self::HyperQueue),
            "slurm" => Ok(Self::Slurm),
            "parallel" => Ok(Self::Parallel),
            _ => Err(format!("found '{name}', expected hyperqueue, slurm or parallel")),
        }
    }
}

/// The text of a job file: `command` is the program and its arguments without the shard.
pub fn job_file(engine: Engine, name: &str, command: &[String], shards: usize) -> String {
    let mut t = String::from("#!/bin/sh\n");
    let fly = command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let name = quoted(name);
    // Writing to a string does not fail.
    let _ = match engine {
        Engine::HyperQueue => write!(
            t,
            "#HQ --name {name}\n#HQ --array 1-{shards}\n#HQ --cpus 1\nexec {fly} --shards {shards} --threads 1\n"
        ),
        Engine::Slurm => write!(
            t,
            "#SBATCH --job-name={name}\n#SBATCH --array=1-{shards}\n#SBATCH --cpus-per-task=1\n#SBATCH --requeue\n\
             exec {fly} --shards {shards} --threads 1\n"
        ),
        Engine::Parallel => writeln!(
            t,
            "exec seq {shards} | parallel --halt never --retries 3 {} --shard '{{}}/{shards}' --threads 1",
            command.iter().map(|word| quoted(&quoted(word))).collect::<Vec<_>>().join(" ")
        ),
    };
    t
}

/// A word of the shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_file_has_its_engines_directives_and_quotes_what_a_shell_would_read() {
        let command = ["/opt/wing beat", "bench", "run", "it's.toml", "--out", "r"].map(str::to_owned);
        let of = |engine| job_file(engine, "pairs", &command, 8);
        assert_eq!(
            of(Engine::HyperQueue),
            "#!/bin/sh\n#HQ --name pairs\n#HQ --array 1-8\n#HQ --cpus 1\n\
             exec '/opt/wing beat' bench run 'it'\\''s.toml' --out r --shards 8 --threads 1\n"
        );
        assert!(of(Engine::Slurm).contains("#SBATCH --array=1-8\n"));
        assert!(of(Engine::Parallel).contains("--shard '{}/8'"));
        assert_eq!("hyperqueue".parse(), Ok(Engine::HyperQueue));
        assert!("cron".parse::<Engine>().unwrap_err().contains("expected hyperqueue"));
    }
}
