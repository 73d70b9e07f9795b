// A product to which something is added, then a function applied: out = op(x y + more), sum = x y + more.
// Operands and parameters as in matmul.wgsl; a layer's bias has more_rs = 0.
//
// bindings  0 x (read), 1 y (read), 2 more (read), 3 out (write), 4 sum (write), 5 params
// entries   main, thin; parts: adds the parts of k, which matmul.wgsl has written
// grid      as matmul.wgsl
// workgroup 256 threads, each owning 4 x 4, 4 x 8 or 8 x 8 results; up to 16 KiB of workgroup memory
//
// With SUM, sum is written, which lies as out does, or with SUMS_A the sums of the rows of x are, by vectors;
// with MORE, more is read: by vectors only if more_cs is 1 and its other steps are multiples of four.
//@ use tile
//@ use tile_threads
//@ use matmul
//@ words more
@group(0) @binding(2) var<storage, read> more: array<u32>;
//@ words out
@group(0) @binding(3) var<storage, read_write> out: array<u32>;
//@ words sum
@group(0) @binding(4) var<storage, read_write> sum: array<u32>;
@group(0) @binding(5) var<uniform> p: Params;

//@ const MORE
const MORE: bool = true;
//@ const SUM
const SUM: bool = true;
//@ load more
fn load_more(i: u32) -> T { return bitcast<f32>(more[i]); }
//@ load4 more
fn load4_more(i: vec4u) -> vec4<T> { return vec4(two_more(i.x, i.y), two_more(i.z, i.w)); }
fn two_more(i: u32, j: u32) -> vec2<T> { return vec2(T(load_more(i)), T(load_more(j))); }
//@ store sum
fn store_sum(w: u32, v: vec2<T>) { sum[w] = bitcast<u32>(v.x); }
//@ store4 sum
fn store4_sum(i: u32, v: vec4<T>) { store_sum(i, v.xy); }
//@ fn op
fn op(x: T) -> T { return x; }

fn store(w: u32, v: vec2<T>, sum: vec2<T>) {
  store_out(w, v);
  if (SUM) { store_sum(w, sum); }
}

fn store4(i: u32, v: vec4<T>, sum: vec4<T>) {
  store4_out(i, v);
  if (SUM) { store4_sum(i, sum); }
}

fn store_quad(at: Place, row: u32, column: u32, v: vec4<T>) {
  if (!WHOLE && (row >= p.m || column >= p.n)) { return; }
  var s = v;
  if (MORE) { s += vec4<T>(load4_more(p.more_off + row * p.more_rs + four_from(column, p.n) * p.more_cs)); }
  write(index_of(at, row, column), p.n - column, vec4<T>(op(s.x), op(s.y), op(s.z), op(s.w)), s);
}

fn store_sums(at: Place, row: u32, v: vec4<T>) { store4_sum(row, v); }
