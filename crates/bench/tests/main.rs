//! Tests of the bench that fly, read records or pages, or take a real program.

mod failures;
mod incidents;
mod place;
mod proxy;
mod records;
mod saved;
mod sitl;
mod sitl_client;
