//! The Model Context Protocol: one layer of messages for our server and for the servers that we ask.

pub(crate) mod message;
pub(crate) mod shown;
pub(crate) mod upstream;
