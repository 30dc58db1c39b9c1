//! A part of a campaign.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};

/// The most parts of a campaign.
const SHARDS_MAX: usize = 1_000_000;

/// Every `count`th flight, beginning with the `index`th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub index: usize,
    /// Number of parts.
    pub count: usize,
}

/// Where engines say which task a process is, and the number of the first.
const ENGINES: [(&str, usize); 3] =
    [("HQ_TASK_ID", 1), ("SLURM_ARRAY_TASK_ID", 1), ("JOB_COMPLETION_INDEX", 0)];

impl Shard {
    /// The whole campaign.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// One of so many parts, by the variable of the engine that started this process: of HyperQueue, of Slurm (arrays from 1)
    /// or of Kubernetes (from 0).
    ///
    /// # Errors
    /// There is no such variable, or its number is not one of a part.
    pub fn of_engine(count: usize, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let names = || ENGINES.map(|(name, _)| name).join(", ");
        let found = ENGINES.iter().find_map(|(name, first)| variable(name).map(|text| (name, first, text)));
        let (name, first, text) =
            found.with_context(|| format!("--shards: found none of {}, expected one", names()))?;
        let last = count + first - 1;
        let number = text.parse::<usize>().ok().filter(|number| (*first..=last).contains(number));
        let number = number.with_context(|| format!("{name}: found '{text}', expected {first} to {last}"))?;
        Ok(Self { index: number + 1 - first, count })
    }

    /// Whether a flight is of this part; flights are numbered from 0.
    pub fn has(self, flight: usize) -> bool {
        flight % self.count == self.index - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = anyhow::Error;

    /// `I/N`, with I from 1 to N.
    fn from_str(text: &str) -> Result<Self> {
        let expected = || format!("found '{text}', expected I/N with I from 1 to N, such as 3/8");
        let (index, count) = text.split_once('/').with_context(expected)?;
        let shard = Self {
            index: index.parse().with_context(expected)?,
            count: count.parse().with_context(expected)?,
        };
        ensure!((1..=SHARDS_MAX).contains(&shard.count), expected());
        ensure!((1..=shard.count).contains(&shard.index), expected());
        Ok(shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_every_flight_once() {
        for count in [1, 3, 7] {
            for flight in 0..20 {
                let of = (1..=count).filter(|&index| Shard { index, count }.has(flight)).count();
                assert_eq!(of, 1, "flight {flight} of {count}");
            }
        }
    }

    #[test]
    fn a_shard_is_a_number_of_a_number_or_explained() {
        assert_eq!("3/8".parse::<Shard>().unwrap(), Shard { index: 3, count: 8 });
        for bad in ["", "3", "0/8", "9/8", "3/0", "-1/8", "1/8/2", "a/b", "1/9999999999"] {
            let error = bad.parse::<Shard>().unwrap_err().to_string();
            assert!(error.contains("expected I/N"), "{bad}: {error}");
        }
    }

    #[test]
    fn engines_number_their_tasks_in_their_own_way() {
        let of = |name: &'static str, value: &'static str| {
            Shard::of_engine(4, move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(of("HQ_TASK_ID", "1").unwrap(), Shard { index: 1, count: 4 });
        assert_eq!(of("SLURM_ARRAY_TASK_ID", "4").unwrap(), Shard { index: 4, count: 4 });
        assert_eq!(of("JOB_COMPLETION_INDEX", "0").unwrap(), Shard { index: 1, count: 4 });
        for (name, value) in [("HQ_TASK_ID", "0"), ("HQ_TASK_ID", "5"), ("JOB_COMPLETION_INDEX", "4")] {
            assert!(of(name, value).unwrap_err().to_string().starts_with(name), "{name} {value}");
        }
        assert!(of("OTHER", "1").unwrap_err().to_string().contains("HQ_TASK_ID"));
    }
}
