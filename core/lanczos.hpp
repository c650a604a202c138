// Lanczos' basis of a symmetric matrix that is in memory.
#pragma once
#include "verbs.hpp"

namespace mercer {

// A symmetric matrix K, row by row, of which the upper half is read; with `centred` it stands for HKH,
// H = I - 11'/n.
struct SymmetricMatrix {
    const double* K = nullptr;
    int64_t n = 0;
    bool centred = false;
};

// An orthonormal basis q_0, q_1, ..., the rows of Q; T = Q A Q'; rest[j] is the length of what A q_j holds
// beside q_0 .. q_j, whose direction is q_{j+1}.
struct LanczosBasis {
    double* Q = nullptr;     // most * n
    double* T = nullptr;     // most * most
    double* rest = nullptr;  // most
    int64_t most = 0;
};

// Multiplies q_from .. q_{to-1} and writes what follows them.  q_from and all before are there.  Ends early
// where A q_j lies in the space already.  Says how many are multiplied.
//   cost    n^2 multiply-adds for each product, and 2 n j to make it orthogonal to j vectors
//   memory  32 n numbers
//   order   stripes of K are summed in their order: the same bits for any number of threads
// Requires to <= basis.most; q_{basis.most} is not written.
int64_t lanczos(const SymmetricMatrix& matrix, const LanczosBasis& basis, int64_t from, int64_t to,
                int threads, const Poll& poll);

}  // namespace mercer
