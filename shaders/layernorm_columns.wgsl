// VJP of layer (or RMS) normalisation, the last dispatch: add up the slots of `partial` into dweight and, if
// sums is 2, dbias; else any buffer is bound to that.
//
// bindings  0 partial (read, f32, [slots, sums, width]), 1 dweight (write), 2 dbias (write), 3 params
// grid      ceil(sums * width / 16) workgroups; linear fold over x, y, z
// workgroup 256 threads = 4 fours of columns x 64 slices of the slots; 4 KiB of workgroup memory
//
// width is a multiple of four; the last four elements of an output are written whole. Slice j adds slots j,
// j + 64, ... in order, then slices are added in pairs: the result depends on shapes alone.
struct Params { slots: u32, width: u32, sums: u32 }
@group(0) @binding(0) var<storage, read> partial: array<vec4<f32>>;
//@ words dweight
@group(0) @binding(1) var<storage, read_write> dweight: array<vec4<u32>>;
//@ words dbias
@group(0) @binding(2) var<storage, read_write> dbias: array<vec4<u32>>;
@group(0) @binding(3) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ store4 dweight
fn store4_dweight(i: u32, v: vec4<T>) { dweight[i >> 2u] = bitcast<vec4<u32>>(v); }
//@ store4 dbias
fn store4_dbias(i: u32, v: vec4<T>) { dbias[i >> 2u] = bitcast<vec4<u32>>(v); }

var<workgroup> sums: array<vec4<f32>, 256>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let fours = p.width / 4u * p.sums; // of dweight, then of dbias
  if (group * 4u >= fours) { return; }
  let four = group * 4u + t % 4u;
  var total = vec4<f32>();
  if (four < fours) {
    for (var slot = t / 4u; slot < p.slots; slot += 64u) { total += partial[slot * fours + four]; }
  }
  sums[t] = total;
  for (var half = 128u; half >= 4u; half /= 2u) {
    workgroupBarrier();
    if (t < half) {
      total += sums[t + half];
      sums[t] = total;
    }
  }
  if (t >= 4u || four >= fours) { return; }
  if (four < p.width / 4u) {
    store4_dweight(four * 4u, total);
  } else {
    store4_dbias(four * 4u - p.width, total);
  }
}
