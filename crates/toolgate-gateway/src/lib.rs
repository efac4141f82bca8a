//! The command `toolgate`: a gate from a folder, for the shell. It decides nothing: what is decided stands in the crate
//! `toolgate`.
//!
//! [`config`] reads a folder, [`backend`] runs its tools, [`identity`] knows its people, [`http`] answers programs,
//! [`cli`] is the command.

pub mod backend;
pub mod cli;
pub mod config;
pub mod http;
pub mod identity;
mod mcp;
mod shown;
