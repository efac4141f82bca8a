//! The Model Context Protocol: one layer of messages for our server and for the servers that we ask.
//!
//! ```text
//! a line of stdin  -> stdio -> connection \
//!                                          message -> server (by version) -> Tools -> the gate
//! a body of a POST ---------> http        /
//! ```

pub(crate) mod connection;
pub(crate) mod http;
pub mod message;
pub(crate) mod server;
pub(crate) mod shown;
pub(crate) mod stdio;
pub(crate) mod upstream;
pub(crate) mod version;

use std::io::{self, Write};
use std::sync::Arc;

use tokio::io::AsyncRead;
use tokio_util::sync::CancellationToken;
use toolgate::Gate;
use toolgate::session::Session;

use crate::cli::journal;

/// Serves a gate to one MCP client, who asks as this session, over any pair of pipes: a message a line, as on stdin and
/// stdout. Ends when there is nothing more to read, or `stop` is cancelled, and every call that had begun has its answer.
///
/// `output` is written in a thread of its own, and may block it. Fails where there is no thread to be had.
pub async fn serve(
    gate: Gate,
    session: Session,
    input: impl AsyncRead + Unpin,
    output: impl Write + Send + 'static,
    stop: &CancellationToken,
) -> io::Result<()> {
    let tools = Arc::new(server::GateFor { gate, session });
    let lines = stdio::Frames::new(input, stdio::LONGEST_LINE);
    let writer = stdio::FrameWriter::to(move || output)?;
    connection::serve(tools, lines, &writer, stop, &journal()).await;
    Ok(())
}
