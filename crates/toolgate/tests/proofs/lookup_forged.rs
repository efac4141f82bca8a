//! E0451: only the room of facts makes a look-up, from checked arguments and for a tool that does not act.

use crate::backend::{Backend, Context, Lookup};

async fn forged(backend: &dyn Backend, context: Context) {
    backend.look(Lookup { context }).await;
}
