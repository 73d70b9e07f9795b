// Rows of a matrix in registers. LANES adjacent threads share a row and read it once; each holds SLOTS fours
// of adjacent columns, for which the host repeats the lines that `slots` marks. Wider rows are split into
// parts of WIDTH columns and take two dispatches: SPLIT 1 writes what the parts come to, SPLIT 2 reads it and
// finishes. The file behind this one declares `p` with rows, cols and parts (1 where nothing is split).
//
// LANES is 4, 16, 64 or 256, and 256 in a split. FOURS: cols, strides and offsets are multiples of four, and
// rows are bound by vectors. SUBGROUP is the least size of a subgroup of the GPU, a power of two; with 1 none
// are used. Folds over lanes go in pairs, in the same order for every SUBGROUP: lanes one apart, then two,
// four, ..; so all variants give the same bits.
//@ const FOURS
const FOURS: bool = false;
//@ const LANES
const LANES: u32 = 256u;
//@ const SLOTS
const SLOTS: u32 = 1u;
//@ const SPLIT
const SPLIT: u32 = 0u;
//@ const SUBGROUP
const SUBGROUP: u32 = 1u;
const ROWS: u32 = 256u / LANES;
const WIDTH: u32 = LANES * SLOTS * 4u;
const LOWEST: f32 = -3.4028234e38;

// A row or a part of one (its number counts all parts), and the first column of a thread in it. Past the last
// row is the last one again, not live: it is computed and not written.
struct Place { unit: u32, row: u32, first: u32, live: bool }

fn place(group: u32, t: u32) -> Place {
  let wanted = group * ROWS + t / LANES;
  let unit = min(wanted, p.rows * p.parts - 1u);
  if (SPLIT == 0u) { return Place(unit, unit, t % LANES * 4u, unit == wanted); }
  let row = unit / p.parts;
  return Place(unit, row, (unit - row * p.parts) * WIDTH + t * 4u, true);
}

// The columns of a slot: neighbouring lanes hold neighbouring fours.
fn col4(slot: u32, first: u32) -> vec4<u32> {
  return slot * LANES * 4u + first + vec4<u32>(0u, 1u, 2u, 3u);
}

// Which of four columns there are.
fn here4(c: vec4<u32>) -> vec4<bool> {
  if (FOURS) { return vec4<bool>(c.x < p.cols); }
  return c < vec4<u32>(p.cols);
}

// Four columns, the last one in place of those that there are not.
fn inside4(c: vec4<u32>) -> vec4<u32> {
  if (FOURS) { return vec4<u32>(min(c.x, p.cols - 4u)); }
  return min(c, vec4<u32>(p.cols - 1u));
}

fn sum4(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }
fn max4(v: vec4<f32>) -> f32 { return max(max(v.x, v.y), max(v.z, v.w)); }

// Lanes that shuffles fold, and words of workgroup memory that a thread folds after that, once or twice.
const NEAR: u32 = min(LANES, SUBGROUP);
const FAR: u32 = LANES / NEAR;
const HOP: u32 = min(FAR, 16u);
const REST: u32 = FAR / HOP;
var<workgroup> words: array<vec2<f32>, 528>;

//@ shuffle SUBGROUP
fn other(v: f32, step: u32) -> f32 { return v; }

fn fold(a: vec2<f32>, b: vec2<f32>, greatest: bool) -> vec2<f32> {
  if (greatest) { return max(a, b); }
  return a + b;
}
fn fold_other(v: f32, step: u32, greatest: bool) -> f32 {
  if (NEAR <= step) { return v; }
  if (greatest) { return max(v, other(v, step)); }
  return v + other(v, step);
}
fn near(own: f32, greatest: bool) -> f32 {
  var v = fold_other(own, 1u, greatest);
  v = fold_other(v, 2u, greatest);
  v = fold_other(v, 4u, greatest);
  v = fold_other(v, 8u, greatest);
  v = fold_other(v, 16u, greatest);
  v = fold_other(v, 32u, greatest);
  return fold_other(v, 64u, greatest);
}
fn fold2(at: u32, greatest: bool) -> vec2<f32> { return fold(words[at], words[at + 1u], greatest); }
fn fold4(at: u32, greatest: bool) -> vec2<f32> {
  return fold(fold2(at, greatest), fold2(at + 2u, greatest), greatest);
}
fn fold8(at: u32, greatest: bool) -> vec2<f32> {
  return fold(fold4(at, greatest), fold4(at + 4u, greatest), greatest);
}
fn fold16(at: u32, greatest: bool) -> vec2<f32> {
  return fold(fold8(at, greatest), fold8(at + 8u, greatest), greatest);
}
fn fold_hop(at: u32, greatest: bool) -> vec2<f32> {
  if (HOP == 2u) { return fold2(at, greatest); }
  if (HOP == 4u) { return fold4(at, greatest); }
  if (HOP == 8u) { return fold8(at, greatest); }
  return fold16(at, greatest);
}
fn fold_rest(at: u32, greatest: bool) -> vec2<f32> {
  if (REST == 2u) { return fold2(at, greatest); }
  if (REST == 4u) { return fold4(at, greatest); }
  if (REST == 8u) { return fold8(at, greatest); }
  return fold16(at, greatest);
}

// Sums, or the greatest, of what the lanes of a row have; each of them gets them. Calls that follow each
// other take turns, 0 and 1, so that none writes what another thread still reads.
fn lane_fold(own: vec2<f32>, t: u32, turn: u32, greatest: bool) -> vec2<f32> {
  if (FAR == 1u) { return own; }
  if (t % NEAR == 0u) { words[turn * 256u + t / NEAR] = own; }
  workgroupBarrier();
  let found = fold_hop(turn * 256u + t / (NEAR * HOP) * HOP, greatest);
  if (REST == 1u) { return found; }
  if (t % (NEAR * HOP) == 0u) { words[512u + t / (NEAR * HOP)] = found; }
  workgroupBarrier();
  return fold_rest(512u + t / LANES * REST, greatest);
}
fn lane_sums(v: vec2<f32>, t: u32, turn: u32) -> vec2<f32> {
  return lane_fold(vec2<f32>(near(v.x, false), near(v.y, false)), t, turn, false);
}
fn lane_sum(v: f32, t: u32, turn: u32) -> f32 {
  return lane_fold(vec2<f32>(near(v, false), 0.0), t, turn, false).x;
}
fn lane_max(v: f32, t: u32, turn: u32) -> f32 {
  return lane_fold(vec2<f32>(near(v, true), 0.0), t, turn, true).x;
}
