// Elements as whole numbers with their order: `key_of(a) < key_of(b)` where a comes before b. NaN is the
// largest, whatever its bits; the two zeros are one number. Only bits are looked at, since comparisons of
// floats may assume that there is no NaN. Those of a half stand in the upper bits of its key.
//@ const KIND
const KIND: u32 = 2u; // 0 bool or u32, 1 i32, 2 f32, 3 bf16, 4 f16
//@ const SMALLEST
const SMALLEST: bool = false;

// The word that holds element i.
fn word_of(i: u32) -> u32 { return i >> u32(KIND > 2u); }

// The key of element i, which the word holds.
fn key_of(word: u32, i: u32) -> u32 {
  if (KIND == 0u) { return word; }
  if (KIND == 1u) { return word ^ 0x80000000u; }
  var bits = word;
  if (KIND > 2u) { bits = (word >> ((i & 1u) << 4u)) << 16u; }
  let infinity = select(0x7f800000u, 0x7c000000u, KIND == 4u);
  if ((bits & 0x7fffffffu) > infinity) { return 0xffffffffu; }
  // Sign and magnitude: the larger a negative number's magnitude, the smaller its key. Minus zero is zero.
  return select(bits | 0x80000000u, ~bits, bits > 0x80000000u);
}

// The key of an element among which the largest or, with SMALLEST, the smallest is wanted. NaN is either.
fn extreme_key(word: u32, i: u32) -> u32 {
  let key = key_of(word, i);
  return select(~key, key, !SMALLEST || (KIND > 1u && key == 0xffffffffu));
}
