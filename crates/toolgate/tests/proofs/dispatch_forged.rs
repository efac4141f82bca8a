//! E0451: a backend cannot be handed work that was never reserved.

use crate::backend::{Backend, Context, Dispatch};

async fn forged(backend: &dyn Backend, context: Context) {
    backend.run(Dispatch { context }).await;
}
