//! The command `toolgate`: a gate from a folder, for the shell. It decides nothing: what is decided stands in the crate
//! `toolgate`.
//!
//! [`config`] reads a folder, [`backend`] runs its tools, [`identity`] knows its people, [`cli`] is the command. `mcp` speaks
//! the protocol to clients and to servers, `import` makes contracts of a server's tools, `wrap` is a gate over one server.

pub mod backend;
pub mod cli;
pub mod config;
pub mod identity;
mod import;
mod mcp;
mod wrap;
