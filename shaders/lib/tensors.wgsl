// The walk over many flat tensors in one dispatch, 1024 elements per workgroup. The file behind it declares
// `p` with a table `tensors`: the first workgroup of tensor k, its count, and two words of its own.
//
// Such a file handles one tensor; for n of them the host repeats the lines that `tensors` marks: the bindings
// x0 to xn of each role, and the cases of the functions that read and write an element.
//@ const TENSORS
const TENSORS: u32 = 1u;

struct Share { tensor: u32, start: u32, end: u32 }

// The tensor of a workgroup and the range of elements that it handles.
fn share_of(group: u32) -> Share {
  var k = 0u;
  while (k + 1u < TENSORS && p.tensors[k + 1u].x <= group) { k += 1u; }
  let start = (group - p.tensors[k].x) * 1024u;
  return Share(k, start, min(start + 1024u, p.tensors[k].y));
}
