//! A connection whose peer takes nothing for too long fails. Without it a peer that is gone, or that never reads, keeps
//! its event stream for as long as the kernel keeps its bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A transport whose writes may stall for a limited time.
pub(crate) struct Patient<T> {
    io: T,
    limit: Duration,
    end: Pin<Box<Sleep>>,
    /// Since when the peer takes nothing: `end` counts.
    stalled: bool,
}

impl<T> Patient<T> {
    pub(crate) fn new(io: T, limit: Duration) -> Self {
        Self { io, limit, end: Box::pin(sleep(limit)), stalled: false }
    }

    /// The outcome of a write; one that waits fails when the time is over.
    fn judge<O>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<O>>) -> Poll<io::Result<O>> {
        if outcome.is_ready() {
            self.stalled = false;
            return outcome;
        }
        if !std::mem::replace(&mut self.stalled, true) {
            self.end.as_mut().reset(Instant::now() + self.limit);
        }
        ready!(self.end.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing")))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Patient<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Patient<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write(context, bytes);
        self.judge(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write_vectored(context, pieces);
        self.judge(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.io).poll_flush(context);
        self.judge(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.io).poll_shutdown(context);
        self.judge(context, outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_something_in_time_is_waited_for_and_one_that_takes_nothing_is_not() {
        let limit = Duration::from_secs(10);
        let (ours, mut theirs) = duplex(4);
        let mut ours = Patient::new(ours, limit);
        let reading = tokio::spawn(async move {
            let mut piece = [0; 4];
            for _ in 0..5 {
                sleep(limit - Duration::from_secs(1)).await;
                theirs.read_exact(&mut piece).await.unwrap();
            }
            theirs
        });
        ours.write_all(&[0; 24]).await.expect("a slow peer");
        let theirs = reading.await.unwrap();
        // Idle for longer than the limit, then full.
        sleep(3 * limit).await;
        let since = Instant::now();
        let error = ours.write_all(&[0; 4]).await.expect_err("nothing is taken");
        assert_eq!((error.kind(), since.elapsed()), (io::ErrorKind::TimedOut, limit));
        drop(theirs);
    }
}
