// VJP of cross entropy: dx[r, c] = g[r] * (exp(x[r, c] - top - spread) - [c = target[r]]), zero on ignored
// rows.
//
// bindings  0 x (read), 1 labels (read, i32: the target classes), 2 terms (read, f32: top and spread of a
//           row, as cross_entropy writes them), 3 g (read, f32), 4 out (write), 5 params
// grid      ceil(rows * words / 1024) workgroups, words = ceil(cols / EPW) per row; linear fold over x, y, z
// workgroup 256 threads, each taking four words 256 apart; no workgroup memory
//
// g_stride 0 spreads one cotangent over all rows (a summed or averaged loss; scale multiplies it). Strides
// are in elements; out_stride is a multiple of EPW. With smoothing s the one-hot row becomes (1 - s) * [c =
// target] + s / cols.
struct Params {
  rows: u32, cols: u32, words: u32, x_off: u32, x_stride: u32, g_stride: u32, out_stride: u32,
  ignore_index: i32, smoothing: f32, scale: f32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> labels: array<u32>;
@group(0) @binding(2) var<storage, read> terms: array<u32>;
@group(0) @binding(3) var<storage, read> g: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<u32>;
@group(0) @binding(5) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load g
fn load_g(i: u32) -> T { return bitcast<f32>(g[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ fn exp_
fn exp_(x: f32) -> f32 { return exp(x); }

// The gradient of one logit.
fn grad(row: u32, col: u32, target_: i32, top: f32, spread: f32, g: f32) -> f32 {
  if (col >= p.cols || target_ == p.ignore_index) { return 0.0; }
  let hit = select(0.0, 1.0 - p.smoothing, i32(col) == target_);
  let share = exp_(load_x(p.x_off + row * p.x_stride + col) - top - spread);
  return g * (share - hit - p.smoothing / f32(p.cols));
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  for (var j = 0u; j < 4u; j += 1u) {
    let w = group * 1024u + j * 256u + t;
    if (w < p.rows * p.words) {
      let row = w / p.words;
      let col = (w % p.words) * EPW;
      let target_ = bitcast<i32>(labels[row]);
      let top = bitcast<f32>(terms[2u * row]);
      let spread = bitcast<f32>(terms[2u * row + 1u]);
      let scale = load_g(row * p.g_stride) * p.scale;
      var v = vec2<f32>(grad(row, col, target_, top, spread, scale), 0.0);
      if (EPW == 2u) { v.y = grad(row, col + 1u, target_, top, spread, scale); }
      store_out((row * p.out_stride + col) / EPW, v);
    }
  }
}
