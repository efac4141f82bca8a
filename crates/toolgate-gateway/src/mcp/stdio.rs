//! Messages over a pipe, one a line: what a program and its server say to each other through stdin and stdout.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::sync::{mpsc, oneshot};

/// The longest line that is read: four megabytes of content, and what stands around it.
pub(crate) const LONGEST_LINE: usize = 4 * 1024 * 1024 + 64 * 1024;

/// Bytes that are asked for at once.
const AT_ONCE: usize = 16 * 1024;
/// Messages that wait for a reader who is slow; whoever sends the next one waits too.
const WAITING: usize = 64;

/// The lines of a reader. Blank ones are skipped, and an ending of CR LF is taken as one of LF. A line without an
/// ending at the end of the input is one too.
#[derive(Debug)]
pub(crate) struct Frames<R> {
    reader: R,
    most_bytes: usize,
    /// What was read and not handed out. INVARIANT (cancel safe): all that was read is kept here, so a call of `next`
    /// that is dropped loses nothing.
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no ending.
    searched: usize,
    /// What is left of a line that was too long, and of which that was told.
    skipping: bool,
    ended: bool,
}

/// A line that is longer than it may be. It was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line of more than {most_bytes} bytes")]
pub(crate) struct TooLong {
    most_bytes: usize,
}

/// Writes messages, each on a line of its own. Clones write to the same place; the place is closed with the last of them.
#[derive(Clone, Debug)]
pub(crate) struct FrameWriter {
    orders: mpsc::Sender<Order>,
}

/// Nobody reads any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody reads what is written")]
pub(crate) struct Closed;

#[derive(Debug)]
enum Order {
    Write(String),
    Tell(oneshot::Sender<()>),
}

/// What a thread read, for those who may not block.
struct Chunks {
    chunks: mpsc::Receiver<Vec<u8>>,
    chunk: Vec<u8>,
    taken: usize,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(reader: R, most_bytes: usize) -> Self {
        Self { reader, most_bytes, buffer: Vec::new(), searched: 0, skipping: false, ended: false }
    }

    /// The next line; `None` at the end of the input. An input that fails has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        loop {
            let unsearched = self.buffer.iter().skip(self.searched);
            if let Some(more) = unsearched.clone().position(|&byte| byte == b'\n') {
                let mut line = self.take(self.searched + more + 1);
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                line.truncate(line.trim_ascii_end().len());
                if line.len() > self.most_bytes {
                    return Err(TooLong { most_bytes: self.most_bytes });
                }
                if !line.trim_ascii_start().is_empty() {
                    return Ok(Some(line));
                }
                continue;
            }
            self.searched = self.buffer.len();
            if self.searched > self.most_bytes {
                self.buffer = Vec::new();
                self.searched = 0;
                if !std::mem::replace(&mut self.skipping, true) {
                    return Err(TooLong { most_bytes: self.most_bytes });
                }
            }
            if self.ended {
                if self.skipping {
                    return Ok(None);
                }
                let rest = self.take(self.searched);
                return Ok(Some(rest).filter(|rest| !rest.trim_ascii().is_empty()));
            }
            self.buffer.reserve(AT_ONCE);
            self.ended = self.reader.read_buf(&mut self.buffer).await.unwrap_or(0) == 0;
        }
    }

    /// Takes the first bytes out of the buffer.
    fn take(&mut self, bytes: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(bytes);
        self.searched = 0;
        std::mem::replace(&mut self.buffer, rest)
    }
}

impl FrameWriter {
    /// Writes to the stdout of this process. Nobody else can.
    pub(crate) fn stdout() -> io::Result<Self> {
        Self::to(|| io::stdout().lock())
    }

    /// Writes in a thread of its own, which ends with the process at the latest: a reader who is slow holds up nobody
    /// else. INVARIANT (one at a time): the thread alone writes, so no message stands within another.
    pub(super) fn to<W: Write>(open: impl FnOnce() -> W + Send + 'static) -> io::Result<Self> {
        let (orders, waiting) = mpsc::channel(WAITING);
        std::thread::Builder::new().name("writer".into()).spawn(move || write(open(), waiting))?;
        Ok(Self { orders })
    }

    /// Hands in a message, which is JSON text.
    pub(crate) async fn send(&self, message: String) -> Result<(), Closed> {
        self.orders.send(Order::Write(message)).await.map_err(|_| Closed)
    }

    /// Waits until everything that was handed in has been written.
    pub(crate) async fn flushed(&self) -> Result<(), Closed> {
        let (done, told) = oneshot::channel();
        self.orders.send(Order::Tell(done)).await.map_err(|_| Closed)?;
        told.await.map_err(|_| Closed)
    }
}

/// Messages that are written together, and who waits for them.
struct Batch {
    lines: Vec<u8>,
    told: Vec<oneshot::Sender<()>>,
}

impl Batch {
    /// The first order, and what waits behind it.
    fn of(first: Order, waiting: &mut mpsc::Receiver<Order>) -> Self {
        let mut batch = Self { lines: Vec::new(), told: Vec::new() };
        let mut next = Some(first);
        while let Some(order) = next {
            match order {
                // In JSON text these are space between its tokens, and here they would end the line.
                Order::Write(message) => {
                    let inline = |byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
                    batch.lines.extend(message.bytes().map(inline));
                    batch.lines.push(b'\n');
                }
                Order::Tell(done) => batch.told.push(done),
            }
            next = if batch.lines.len() < AT_ONCE { waiting.try_recv().ok() } else { None };
        }
        batch
    }

    fn tell(self) {
        for done in self.told {
            // Whoever asked may have gone.
            let _ = done.send(());
        }
    }
}

/// Writes until nobody can hand anything in, or nobody reads.
fn write(mut writer: impl Write, mut waiting: mpsc::Receiver<Order>) -> io::Result<()> {
    while let Some(first) = waiting.blocking_recv() {
        let batch = Batch::of(first, &mut waiting);
        let written = writer.write_all(&batch.lines).and_then(|()| writer.flush());
        if written.is_err() {
            // Before anybody is told: whoever learns that nobody reads can hand nothing in any more.
            waiting.close();
            return written;
        }
        batch.tell();
    }
    Ok(())
}

/// The stdin of this process. It is read in a thread of its own, which ends with the process: nobody has to wait until
/// a read returns that nobody wants any more.
pub(crate) fn stdin() -> io::Result<impl AsyncRead + Send + Unpin> {
    let (sender, chunks) = mpsc::channel(WAITING);
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut chunk = vec![0; AT_ONCE];
        loop {
            match stdin.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                Ok(read) => {
                    let read = chunk.get(..read).unwrap_or_default().to_vec();
                    if sender.blocking_send(read).is_err() {
                        return;
                    }
                }
            }
        }
    })?;
    Ok(Chunks { chunks, chunk: Vec::new(), taken: 0 })
}

impl AsyncRead for Chunks {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.taken >= self.chunk.len() {
            match self.chunks.poll_recv(cx) {
                Poll::Ready(Some(chunk)) => (self.chunk, self.taken) = (chunk, 0),
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
        let rest = self.chunk.get(self.taken..).unwrap_or_default();
        let fits = rest.get(..rest.len().min(into.remaining())).unwrap_or_default();
        into.put_slice(fits);
        self.taken += fits.len();
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::unix::pipe::Receiver;

    use super::*;

    /// A pipe: what is written to it, and who reads that.
    fn pipe() -> (FrameWriter, Receiver) {
        let (reader, writer) = io::pipe().unwrap();
        (FrameWriter::to(|| writer).unwrap(), Receiver::from_owned_fd(reader.into()).unwrap())
    }

    async fn lines(text: &[u8], most_bytes: usize) -> Vec<Result<String, TooLong>> {
        let mut frames = Frames::new(text, most_bytes);
        let mut lines = Vec::new();
        loop {
            match frames.next().await {
                Ok(Some(line)) => lines.push(Ok(String::from_utf8(line).unwrap())),
                Ok(None) => return lines,
                Err(error) => lines.push(Err(error)),
            }
        }
    }

    #[tokio::test]
    async fn each_line_is_a_message_and_blank_ones_are_none() {
        let found = lines(b"{\"a\":1}\n\r\n  \n{\"b\":2}\r\n\n{\"c\":3}", 100).await;
        assert_eq!(found, [Ok("{\"a\":1}".to_owned()), Ok("{\"b\":2}".to_owned()), Ok("{\"c\":3}".to_owned())]);
        assert_eq!(lines(b"", 100).await, []);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over_and_told() {
        let too_long = Err(TooLong { most_bytes: 4 });
        let whole = |line: &str| Ok(line.to_owned());
        assert_eq!(lines(b"abcd\r\nabcde\nab\n", 4).await, [whole("abcd"), too_long.clone(), whole("ab")]);
        let long = [vec![b'x'; 200_000], b"\nab\n".to_vec()].concat();
        assert_eq!(lines(&long, 4).await, [too_long.clone(), whole("ab")]);
        assert_eq!(lines(&vec![b'x'; 200_000], 4).await, [too_long]);
    }

    #[tokio::test]
    async fn bytes_that_come_one_by_one_are_kept_while_nobody_waits_for_them() {
        let (mut here, there) = tokio::io::duplex(1);
        let mut frames = Frames::new(there, 100);
        tokio::spawn(async move {
            for byte in b"{\"n\":1}\n{\"n\":2}\n" {
                here.write_all(&[*byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let mut found = Vec::new();
        loop {
            // Every wait is given up after one look, and the next one goes on where it stood.
            tokio::select! {
                biased;
                line = frames.next() => match line.unwrap() {
                    Some(line) => found.push(String::from_utf8(line).unwrap()),
                    None => break,
                },
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(found, ["{\"n\":1}", "{\"n\":2}"]);
    }

    #[tokio::test]
    async fn messages_are_written_whole_and_on_one_line_however_many_write() {
        let (writer, there) = pipe();
        let tasks: Vec<_> = (0..20)
            .map(|n| {
                let writer = writer.clone();
                tokio::spawn(async move { writer.send(format!("{{\"n\":\n\r{n}}}")).await })
            })
            .collect();
        drop(writer);
        let mut frames = Frames::new(there, 100);
        let mut found = Vec::new();
        while let Some(line) = frames.next().await.unwrap() {
            found.push(String::from_utf8(line).unwrap());
        }
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok(()));
        }
        found.sort();
        let mut expected: Vec<String> = (0..20).map(|n| format!("{{\"n\":  {n}}}")).collect();
        expected.sort();
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn who_writes_learns_that_it_was_written_or_that_nobody_reads() {
        let (writer, there) = pipe();
        writer.send("{}".into()).await.unwrap();
        assert_eq!(writer.flushed().await, Ok(()));
        drop(there);
        writer.send("{}".into()).await.unwrap();
        assert_eq!(writer.flushed().await, Err(Closed));
        assert_eq!(writer.send("{}".into()).await, Err(Closed));
    }
}
