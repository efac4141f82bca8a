//! The command `toolgate`: a gate from a folder, for the shell. It decides nothing: what is decided stands in the crate
//! `toolgate`.
//!
//! [`config`] reads a folder, `cases` hold it to what it is meant to do, [`backend`] runs its tools, [`identity`] knows its
//! people, [`http`] and [`mcp`] answer programs, `checkpoints` keep the end of the record elsewhere, `messenger` tells of approvals (both work
//! `beside` the gate), `import` makes
//! contracts of an MCP server's tools, `wrap` is a gate over one
//! such server, `journal` is a stderr that never blocks, [`cli`] is the command.

pub mod backend;
mod beside;
mod cases;
mod checkpoints;
pub mod cli;
pub mod config;
mod here;
pub mod http;
pub mod identity;
mod import;
mod init;
pub mod mcp;
mod messenger;
mod shown;
mod state;
mod suggest;
mod wrap;
