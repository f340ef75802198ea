//! Pages of a PostgreSQL btree: the way down from its root, and to which blocks of the table the entries of a
//! leaf point. Entries whose first column is null are left out: no range holds them.
//!
//! A page is a copy, and whatever is in it is believed only as far as it lies within the page.
//!
//! Sources: `storage/bufpage.h`, `storage/itemid.h`, `access/itup.h` and `access/nbtree.h` of PostgreSQL 15
//! to 19.

/// A leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafPage {
    /// The leaf to its right, if there is one.
    pub next: Option<u32>,
    /// The blocks of its entries, in the order of the index.
    pub blocks: Vec<u64>,
}

/// Bytes of the page's header, and of what a btree has at the end of each page.
const HEADER: usize = 24;
const SPECIAL: usize = 16;
/// Where the first page says which one is the root.
const ROOT: usize = HEADER + 8;
/// Flags of a page.
const IS_LEAF: u16 = 1;
const IS_GONE: u16 = 1 << 2 | 1 << 4; // deleted, half-dead
/// Flag of an item that is in use.
const NORMAL: u32 = 1;
/// Flag of a tuple whose tid is none, and of that tid: the tuple holds a list of tids.
const IS_ALTERNATIVE: u16 = 1 << 13;
const IS_LIST: u16 = 1 << 13;
const COUNT: u16 = 0xfff;
/// Flag of a tuple that has nulls; then a bit for each column that is not null follows.
const HAS_NULLS: u16 = 1 << 15;
const NULLS_AT: usize = 8;
/// Bytes of a tid.
const TID: usize = 6;

/// The root, by the index's first page; None if the index is empty, or the page is no btree's.
pub fn root(first: &[u8]) -> Option<u32> {
    Special::of(first)?;
    word(first, ROOT).filter(|root| *root != 0)
}

/// The pages below this one, in the order of the index, if it is in use and no leaf.
pub fn children(page: &[u8]) -> Option<Vec<u32>> {
    let special = Special::of(page).filter(|special| special.flags & (IS_LEAF | IS_GONE) == 0)?;
    special.items(page)?.into_iter().map(|at| Some(tid(page, at)?.0)).collect()
}

/// What a page holds, if it is a leaf that is in use.
pub fn leaf(page: &[u8]) -> Option<LeafPage> {
    let special = Special::of(page).filter(|special| special.flags & (IS_LEAF | IS_GONE) == IS_LEAF)?;
    let mut blocks = Vec::new();
    special.items(page)?.into_iter().for_each(|at| append(page, at, &mut blocks));
    Some(LeafPage { next: special.next, blocks })
}

/// What a btree has at the end of each page.
struct Special {
    /// Where it begins.
    at: usize,
    /// The page to the right, if there is one.
    next: Option<u32>,
    flags: u16,
}

impl Special {
    /// None of a page that is new, or no btree's.
    fn of(page: &[u8]) -> Option<Self> {
        let at = usize::from(half(page, 16)?);
        let (next, flags) = (word(page, at + 4)?, half(page, at + 12)?);
        (at + SPECIAL == page.len()).then_some(Self { at, next: Some(next).filter(|next| *next != 0), flags })
    }

    /// Where the page's tuples are, except for its bound.
    fn items(&self, page: &[u8]) -> Option<Vec<usize>> {
        let items = usize::from(half(page, 12)?).clamp(HEADER, self.at.max(HEADER)) - HEADER;
        // Except on the rightmost page, the first item is the high key, and no entry.
        let first = usize::from(self.next.is_some());
        let mut places = Vec::new();
        for number in first..items / 4 {
            let (at, state) = item(word(page, HEADER + 4 * number)?);
            if state == NORMAL {
                places.push(at);
            }
        }
        Some(places)
    }
}

/// Appends the blocks that the tuple at this place points to: one, or many of equal keys.
fn append(page: &[u8], at: usize, blocks: &mut Vec<u64>) {
    let Some((block, offset, info)) = tid(page, at).zip(half(page, at + TID)).map(|((b, o), i)| (b, o, i))
    else {
        return;
    };
    if info & HAS_NULLS != 0 && page.get(at.saturating_add(NULLS_AT)).is_none_or(|nulls| nulls & 1 == 0) {
        return;
    }
    if info & IS_ALTERNATIVE == 0 || offset & IS_LIST == 0 {
        blocks.push(u64::from(block));
        return;
    }
    let list = at.saturating_add(block as usize);
    let tids =
        (0..usize::from(offset & COUNT)).map_while(|number| tid(page, list.saturating_add(number * TID)));
    blocks.extend(tids.map(|(block, _)| u64::from(block)));
}

/// Block and offset of a tid.
fn tid(page: &[u8], at: usize) -> Option<(u32, u16)> {
    let [high, low, offset] = [half(page, at)?, half(page, at + 2)?, half(page, at + 4)?];
    Some((u32::from(high) << 16 | u32::from(low), offset))
}

/// Where an item is, and its state: fields of 15, 2 and 15 bits in the machine's order.
fn item(word: u32) -> (usize, u32) {
    let (at, state) =
        if cfg!(target_endian = "little") { (word, word >> 15) } else { (word >> 17, word >> 15) };
    ((at & 0x7fff) as usize, state & 3)
}

fn half(page: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(page.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn word(page: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(page.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: usize = 8192;

    /// A page with these tuples, as a server on this machine would write it.
    fn page(flags: u16, next: u32, tuples: &[Vec<u8>]) -> Vec<u8> {
        let (mut page, special) = (vec![0; PAGE], PAGE - SPECIAL);
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        put(12, &((HEADER + 4 * tuples.len()) as u16).to_ne_bytes());
        put(16, &(special as u16).to_ne_bytes());
        put(special + 4, &next.to_ne_bytes());
        put(special + 12, &flags.to_ne_bytes());
        let mut end = special;
        for (number, tuple) in tuples.iter().enumerate() {
            end -= tuple.len().next_multiple_of(8);
            put(end, tuple);
            let (at, size) = (end as u32, tuple.len() as u32);
            let word = if cfg!(target_endian = "little") {
                at | NORMAL << 15 | size << 17
            } else {
                at << 17 | NORMAL << 15 | size
            };
            put(HEADER + 4 * number, &word.to_ne_bytes());
        }
        page
    }

    fn halves(values: &[u16]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    /// A tuple with a key of 8 bytes.
    fn entry(block: u32) -> Vec<u8> {
        halves(&[(block >> 16) as u16, block as u16, 7, 16, 0, 0, 0, 0])
    }

    fn list(listed: &[u32]) -> Vec<u8> {
        let mut tuple = halves(&[0, 16, listed.len() as u16 | IS_LIST, IS_ALTERNATIVE | 40, 0, 0, 0, 0]);
        tuple.extend(listed.iter().flat_map(|block| halves(&[(block >> 16) as u16, *block as u16, 3])));
        tuple
    }

    #[test]
    fn entries_and_lists_of_equal_keys_are_read_in_order() {
        let tuples = [entry(99), entry(5), list(&[70_000, 70_001, 9]), entry(6)];
        let found = leaf(&page(IS_LEAF, 12, &tuples)).expect("a leaf");
        assert_eq!(found, LeafPage { next: Some(12), blocks: vec![5, 70_000, 70_001, 9, 6] });
        // The rightmost page has no bound.
        let found = leaf(&page(IS_LEAF, 0, &tuples)).expect("a leaf");
        assert_eq!((found.next, found.blocks[0], found.blocks.len()), (None, 99, 6));
        assert_eq!(leaf(&page(IS_LEAF, 0, &[])).expect("a leaf").blocks, [] as [u64; 0]);
    }

    #[test]
    fn the_way_down_is_in_the_order_of_the_index() {
        let mut first = page(1 << 3, 0, &[]);
        assert_eq!(root(&first), None);
        first[ROOT..ROOT + 4].copy_from_slice(&290_u32.to_ne_bytes());
        assert_eq!(root(&first), Some(290));
        let tuples = [entry(99), entry(70_000), entry(3), entry(7)];
        // But for the rightmost one, its bound comes first.
        assert_eq!(children(&page(0, 12, &tuples)), Some(vec![70_000, 3, 7]));
        assert_eq!(children(&page(0, 0, &tuples)), Some(vec![99, 70_000, 3, 7]));
        for flags in [IS_LEAF, 1 << 2, 1 << 4] {
            assert_eq!(children(&page(flags, 0, &tuples)), None, "{flags}");
        }
        assert_eq!((root(&[]), root(&[0; PAGE]), children(&[0xff; PAGE])), (None, None, None));
    }

    #[test]
    fn nulls_are_left_out() {
        // Null in its one column; null in the second of two; and a list of nulls.
        let with_nulls = |mut tuple: Vec<u8>, not_null: u8| {
            let info = half(&tuple, 6).expect("it") | HAS_NULLS;
            tuple[6..8].copy_from_slice(&info.to_ne_bytes());
            tuple[NULLS_AT] = not_null;
            tuple
        };
        let tuples = [with_nulls(entry(1), 0), with_nulls(entry(2), 1), with_nulls(list(&[3, 4]), 0)];
        assert_eq!(leaf(&page(IS_LEAF, 0, &tuples)).expect("a leaf").blocks, [2]);
    }

    #[test]
    fn what_is_no_leaf_in_use_has_none() {
        for flags in [0, 1 << 1, IS_LEAF | 1 << 2, IS_LEAF | 1 << 4] {
            assert_eq!(leaf(&page(flags, 0, &[entry(1)])), None, "{flags}");
        }
        assert_eq!(leaf(&[0; PAGE]), None);
        assert_eq!(leaf(&[]), None);
        assert_eq!(leaf(&[0xff; PAGE]), None);
    }

    #[test]
    fn an_item_that_is_not_in_use_is_left_out() {
        let mut page = page(IS_LEAF, 0, &[entry(1), entry(2)]);
        let second = word(&page, HEADER + 4).expect("an item") | 3 << 15;
        page[HEADER + 4..HEADER + 8].copy_from_slice(&second.to_ne_bytes());
        assert_eq!(leaf(&page).expect("a leaf").blocks, [1]);
    }

    proptest! {
        /// A page that is damaged gives something or nothing, but no more than it has room for.
        #[test]
        fn damage_stays_within_the_page(damage in prop::collection::vec((0..PAGE, any::<u8>()), 0..200)) {
            let mut page = page(IS_LEAF, 3, &[entry(1), list(&[2, 3]), entry(4)]);
            damage.into_iter().for_each(|(at, byte)| page[at] = byte);
            if let Some(found) = leaf(&page) {
                prop_assert!(found.blocks.len() <= PAGE / 4 * PAGE / TID);
            }
            prop_assert!(children(&page).is_none_or(|found| found.len() <= PAGE / 4));
            root(&page);
        }
    }
}
