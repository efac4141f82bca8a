//! What calls take of limits, and give back.

use crate::clock::Millis;
use crate::ledger::rows::{Rows, Stored};
use crate::ledger::{Hold, Opened, Taking, Window};

/// What an opening takes of limits, if all of them have room for it.
pub(super) fn take(rows: &dyn Rows, takings: &[Taking], now: Millis) -> Stored<Result<Vec<Hold>, Opened>> {
    let mut holds: Vec<Hold> = Vec::with_capacity(takings.len());
    // What takes nothing fits, also where an edited maximum is exceeded already.
    for (which, taking) in takings.iter().enumerate().filter(|(_, taking)| taking.amount > 0) {
        let Window { begin: window, end } = taking.window(now);
        let already: u64 = holds
            .iter()
            .filter(|hold| hold.counter == taking.counter && hold.window == window)
            .fold(0, |sum, hold| sum.saturating_add(hold.amount));
        let counted = rows.counted(taking.counter, window)?.saturating_add(already);
        if counted.saturating_add(taking.amount) > taking.max {
            return Ok(Err(Opened::Limited { which, left: taking.max.saturating_sub(counted), until: end }));
        }
        holds.push(Hold { counter: taking.counter, window, end, amount: taking.amount });
    }
    Ok(Ok(holds))
}

/// Whether all of them have room now, by the count alone.
pub(in crate::ledger) fn foresee(rows: &dyn Rows, takings: &[Taking], now: Millis) -> Stored<Option<Opened>> {
    Ok(take(rows, takings, now)?.err())
}

#[derive(Clone, Copy)]
pub(super) enum Counting {
    Take,
    Return,
}

pub(super) fn count(rows: &mut dyn Rows, holds: &[Hold], counting: Counting) -> Stored<()> {
    for Hold { counter, window, end, amount } in holds {
        let counted = rows.counted(*counter, *window)?;
        let count = match counting {
            Counting::Take => counted.saturating_add(*amount),
            // Of a window that is long over nothing is counted any more, and nobody takes in it.
            Counting::Return if counted == 0 => continue,
            Counting::Return => counted.saturating_sub(*amount),
        };
        rows.put_counted(*counter, *window, count, Window::counted_until(*end))?;
    }
    Ok(())
}
