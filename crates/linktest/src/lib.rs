//! Tests of the link between two aircraft (thesis section 4.1.3.1, *Dronning*): one sends numbered datagrams, which say where
//! it is, the other keeps those that it receives.
//!
//! A [`Record`] is one test, from one aircraft to another; its file is CSV. [`Report`] is what it comes to. [`Fit`] is loss
//! against distance from many tests, and [`Table`] the file of it, which a bench flies. Nothing here has a clock or a socket.
#![forbid(unsafe_code)]

mod csv;
mod fit;
mod record;
mod report;
pub mod statistics;
mod table;

pub use csv::CsvError;
pub use fit::{Bin, Fit};
pub use record::{COUNT_MAX, Flight, Reception, Record, Test};
pub use report::{Burst, Report};
pub use table::{Table, TableError};
