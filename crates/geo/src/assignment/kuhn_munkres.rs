//! Kuhn and Munkres' method with potentials: the cheapest of all permutations in O(n³).
//!
//! Rows are matched one after another, each along the cheapest path over those matched before (Dijkstra's
//! method over reduced costs, as R. Jonker and A. Volgenant, "A shortest augmenting path algorithm", 1987). Their
//! third step, which lets rows displace each other before, costs six times more than it saves here: squares of
//! distances differ so little that prices rise in many small steps.

/// Not matched.
const FREE: usize = usize::MAX;

/// For each of `count` rows its column: the permutation with the least sum of costs. Ties resolve the same way
/// on every machine. A sum of two costs must not overflow.
///
/// # Panics
/// If `count` is above `N`.
pub fn kuhn_munkres<const N: usize>(count: usize, cost: impl Fn(usize, usize) -> i64) -> [usize; N] {
    assert!(count <= N, "{count} rows, expected at most {N}");
    let mut matching =
        Matching { column_of: [FREE; N], row_of: [FREE; N], of_row: [0; N], of_column: [0; N] };
    matching.take_cheapest(count, &cost);
    for row in 0..count {
        if matching.column_of[row] == FREE {
            matching.augment(count, &cost, row);
        }
    }
    matching.column_of
}

/// What is matched, and the potentials: of no pair is the cost less than theirs together, of a matched pair it
/// is as much.
struct Matching<const N: usize> {
    column_of: [usize; N],
    row_of: [usize; N],
    of_row: [i64; N],
    of_column: [i64; N],
}

impl<const N: usize> Matching<N> {
    fn pair(&mut self, row: usize, column: usize) {
        self.column_of[row] = column;
        self.row_of[column] = row;
    }

    /// Each column takes the row that is cheapest for it, if no other has.
    fn take_cheapest(&mut self, count: usize, cost: &impl Fn(usize, usize) -> i64) {
        for column in (0..count).rev() {
            let (mut least, mut row) = (i64::MAX, 0);
            for r in 0..count {
                let c = cost(r, column);
                if c < least {
                    (least, row) = (c, r);
                }
            }
            self.of_column[column] = least;
            if self.column_of[row] == FREE {
                self.pair(row, column);
            }
        }
    }

    /// Matches one more row, along the cheapest path over rows that change their column.
    fn augment(&mut self, count: usize, cost: &impl Fn(usize, usize) -> i64, row: usize) {
        let (mut length, mut from) = ([i64::MAX; N], [row; N]);
        // Columns that the path has not reached, then the reached ones, the last one first.
        let mut columns: [usize; N] = core::array::from_fn(|j| j);
        let mut left = count;
        let (mut here, mut reached) = (row, 0);
        let end = loop {
            let so_far = reached - self.of_row[here];
            let (mut least, mut nearest) = (i64::MAX, 0);
            for (at, &j) in columns[..left].iter().enumerate() {
                let next = so_far + cost(here, j) - self.of_column[j];
                if next < length[j] {
                    (length[j], from[j]) = (next, here);
                }
                // Among equals one that is free ends the search.
                if length[j] < least || length[j] == least && self.row_of[j] == FREE {
                    (least, nearest) = (length[j], at);
                }
            }
            reached = least;
            left -= 1;
            columns.swap(nearest, left);
            let column = columns[left];
            if self.row_of[column] == FREE {
                break column;
            }
            here = self.row_of[column];
        };
        self.of_row[row] += reached;
        for &column in &columns[left + 1..count] {
            let gain = reached - length[column];
            self.of_row[self.row_of[column]] += gain;
            self.of_column[column] -= gain;
        }
        let mut column = end;
        loop {
            let taker = from[column];
            let previous = self.column_of[taker];
            self.pair(taker, column);
            if taker == row {
                break;
            }
            column = previous;
        }
    }
}
