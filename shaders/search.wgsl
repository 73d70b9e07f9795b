// Binary search in ascending lines: out[i] is the place of values[i] before the elements of its line that are
// equal to it or, with RIGHT, behind them. NaN counts as the largest.
//
// bindings  0 sorted (read), 1 values (read), 2 out (write, i32), 3 params
// grid      ceil(count / 256) workgroups; linear fold over x, y, z
// workgroup 256 threads, one value each; no workgroup memory
//
// Both are dense from their offsets. A line has `length` elements, and `each` neighbouring values look into
// the same one. With COUNTED the values are the int32 0, 1, 2, ..., and `values` is not read.
//@ use order
//
// With LONG elements have two words and their keys too, the upper one first; KIND is that of the upper one.
struct Params { length: u32, each: u32, count: u32, sorted_off: u32, values_off: u32 }
@group(0) @binding(0) var<storage, read> sorted: array<u32>;
@group(0) @binding(1) var<storage, read> values: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

//@ const COUNTED
const COUNTED: bool = false;
//@ const RIGHT
const RIGHT: bool = false;
//@ const LONG
const LONG: bool = false;

// The key of an element, of which these are the words.
fn keys_of(word: u32, upper: u32, i: u32) -> vec2<u32> {
  if (LONG) { return vec2<u32>(key_of(upper, i), word); }
  return vec2<u32>(key_of(word, i), 0u);
}

// The first of the words of element i.
fn first_of(i: u32) -> u32 {
  if (LONG) { return 2u * i; }
  return word_of(i);
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (wid.x + groups.x * (wid.y + groups.y * wid.z)) * 256u + t;
  if (i >= p.count) { return; }
  let own = p.values_off + i;
  var key = vec2<u32>(i ^ 0x80000000u, 0u);
  if (!COUNTED) { key = keys_of(values[first_of(own)], values[first_of(own) + u32(LONG)], own); }
  let line = p.sorted_off + (i / p.each) * p.length;
  // The place is at least `low` and at most `high`.
  var low = 0u;
  var high = p.length;
  while (low < high) {
    let middle = (low + high) / 2u;
    let at = first_of(line + middle);
    let other = keys_of(sorted[at], sorted[at + u32(LONG)], line + middle);
    let is_same = other.x == key.x;
    let is_before = other.x < key.x || (is_same && other.y < key.y);
    if (is_before || (RIGHT && is_same && other.y == key.y)) { low = middle + 1u; } else { high = middle; }
  }
  out[i] = low;
}
