//! The Model Context Protocol: one layer of messages for our server and for the servers that we ask.
//!
//! ```text
//! a line of stdin  -> stdio -> connection \
//!                                          message -> server (by version) -> Tools -> the gate
//! a body of a POST ---------> http        /
//! ```

pub(crate) mod connection;
pub(crate) mod http;
pub(crate) mod message;
pub(crate) mod server;
pub(crate) mod shown;
pub(crate) mod stdio;
pub(crate) mod upstream;
pub(crate) mod version;
